// SPDX-License-Identifier: BSD-3-Clause
//
// Programs under test.
#include "launched.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <stdexcept>

namespace canele::test {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto limit = std::chrono::seconds(1000);

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Checks again until the condition holds or the limit is reached.
bool eventually(const std::function<bool()>& holds) {
  const Clock::time_point end = Clock::now() + limit;
  while (!holds()) {
    if (Clock::now() > end) return false;
    poll(nullptr, 0, 5);
  }
  return true;
}

std::vector<std::string> environment(const std::vector<std::string>& added) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('=') + 1);
    bool replaced = false;
    for (const std::string& variable : added) replaced |= variable.starts_with(name);
    if (!replaced) all.push_back(text);
  }
  all.insert(all.end(), added.begin(), added.end());
  return all;
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (const std::string& string : strings) result.push_back(const_cast<char*>(string.c_str()));
  result.push_back(nullptr);
  return result;
}

}  // namespace

Launched::Launched(const std::vector<std::string>& command, const std::vector<std::string>& variables) {
  std::string pattern = (fs::temp_directory_path() / "launcher-test.XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  directory_ = pattern;
  fs::create_directory(directory_ / "tmp");
  mark_ = "LAUNCHER_TEST=" + directory_.filename().string();
  std::vector<std::string> added = variables;
  added.push_back(mark_);
  added.push_back("TMPDIR=" + (directory_ / "tmp").string());
  const std::vector<std::string> strings = environment(added);
  const std::vector<char*> env = pointers(strings);
  const std::vector<char*> arguments = pointers(command);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe failed");
  const int out = open((directory_ / "out").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const int err = open((directory_ / "err").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  pid_ = fork();
  if (pid_ == 0) {
    dup2(ends[0], 0);
    dup2(out, 1);
    dup2(err, 2);
    execvpe(arguments[0], arguments.data(), env.data());
    _exit(125);
  }
  close(ends[0]);
  close(out);
  close(err);
  input_ = ends[1];
}

Launched::~Launched() {
  close_input();
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  for (const pid_t left : marked_processes()) kill(left, SIGKILL);  // the test has failed by now
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
}

void Launched::write_input(const std::string& text) const {
  ASSERT_EQ(write(input_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

void Launched::close_input() {
  if (input_ >= 0) close(input_);
  input_ = -1;
}

std::string Launched::output() const { return read_file(directory_ / "out"); }

bool Launched::has_ended() const {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_;
}

bool Launched::wait_for(const std::string& text, int times) const {
  const auto there = [&] { return count(output(), text) >= times; };
  eventually([&] { return there() || has_ended(); });
  return there();  // also if it has said so and ended
}

void Launched::send(int signal) const { ASSERT_EQ(kill(pid_, signal), 0); }

Result Launched::finish() {
  int status = 0;
  const bool ended = eventually([&] { return waitpid(pid_, &status, WNOHANG) == pid_; });
  Result result;
  result.out = output();
  result.err = read_file(directory_ / "err");
  if (!ended) {
    ADD_FAILURE() << "the program does not end\n" << result.out << result.err;
    return result;  // the destructor kills it
  }
  pid_ = -1;
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  result.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return result;
}

std::vector<pid_t> Launched::marked_processes() const {
  std::vector<pid_t> found;
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (read_file(entry->path() / "environ").find(mark_) != std::string::npos) found.push_back(std::stoi(name));
  }
  return found;
}

std::vector<std::string> Launched::traces_now() const {
  std::vector<std::string> found;
  std::error_code error;  // a directory that vanishes meanwhile ends the walk: the next check sees what is left
  for (fs::recursive_directory_iterator file(directory_ / "tmp", error), end; file != end; file.increment(error)) {
    if (file->path().filename().string().starts_with("tsan.")) continue;  // of a rank killed while TSan starts
    found.push_back("file " + file->path().string());
  }
  for (const pid_t pid : marked_processes())
    found.push_back("process " + std::to_string(pid) + " " + read_file("/proc/" + std::to_string(pid) + "/comm"));
  return found;
}

std::string Launched::traces() const {
  std::vector<std::string> left;
  eventually([&] { return (left = traces_now()).empty(); });
  std::string text;
  for (const std::string& trace : left) text += trace + "; ";
  return text;
}

Result run(const std::vector<std::string>& command, const std::vector<std::string>& variables,
           const std::string& input) {
  Launched launched(command, variables);
  if (!input.empty()) launched.write_input(input);
  launched.close_input();
  Result result = launched.finish();
  EXPECT_EQ(launched.traces(), "");
  return result;
}

bool installed(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++found;
  return found;
}

}  // namespace canele::test
