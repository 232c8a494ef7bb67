// SPDX-License-Identifier: BSD-3-Clause
//
// fork, exec, signals, waitpid.
#include "apps/run/processes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "apps/run/options.hpp"

namespace canele::run {
namespace {

/// What failed in the child. Sent through the pipe that a successful exec closes.
struct Failure {
  int step;
  int error;
};
constexpr std::array step_names = {"bind to a core", "change to the working directory", "redirect its input and output",
                                   "execute",        "enter its network name space",    "pass its connection on"};
constexpr int step_execute = 3;

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (const std::string& string : strings) result.push_back(const_cast<char*>(string.c_str()));
  result.push_back(nullptr);
  return result;
}

/// Runs in the child, between fork and exec. Makes system calls only, because other threads may have held any lock at
/// the fork.
[[noreturn]] void become_rank(const Launch& launch, char* const* arguments, char* const* environment,
                              const sigset_t& signals, const rlimit& files, pid_t parent, int report) {
  const auto tell_guard = [&launch](pid_t what) {
    // Fails only if the guard was killed; the job can do without it.
    [[maybe_unused]] const ssize_t written = write(launch.guard_fd, &what, sizeof what);
  };
  const auto give_up = [&](int step) {
    const Failure failure = {step, errno};
    tell_guard(-getpid());
    [[maybe_unused]] const ssize_t written = write(report, &failure, sizeof failure);
    _exit(exit_not_found);
  };
  setpgid(0, 0);
  tell_guard(getpid());
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // the parent died before PDEATHSIG was set
  struct sigaction plain = {};
  plain.sa_handler = SIG_DFL;
  sigaction(SIGPIPE, &plain, nullptr);  // canele-run ignores it; exec resets handlers by itself
  sigprocmask(SIG_SETMASK, &signals, nullptr);
  if (files.rlim_max != 0) setrlimit(RLIMIT_NOFILE, &files);
  if (launch.bind && sched_setaffinity(0, sizeof launch.cpus, &launch.cpus) != 0) give_up(0);
  if (!launch.directory.empty() && chdir(launch.directory.c_str()) != 0) give_up(1);
  const std::array wanted = {launch.stdin_fd, launch.stdout_fd, launch.stderr_fd};
  for (int fd = 0; fd < 3; ++fd)
    if (wanted[static_cast<std::size_t>(fd)] != fd && dup2(wanted[static_cast<std::size_t>(fd)], fd) < 0) give_up(2);
  if (launch.namespace_fd >= 0 && setns(launch.namespace_fd, CLONE_NEWNET) != 0) give_up(4);
  if (launch.server_fd >= 0 && fcntl(launch.server_fd, F_SETFD, 0) != 0) give_up(5);
  execve(launch.file.c_str(), arguments, environment);
  give_up(step_execute);
  _exit(exit_not_found);
}

bool is_executable_file(const std::filesystem::path& path) {
  struct stat information;
  return stat(path.c_str(), &information) == 0 && S_ISREG(information.st_mode) && access(path.c_str(), X_OK) == 0;
}

struct Status {
  char state = 0;  ///< a letter as of proc(5); 0: the process is gone
  pid_t parent = -1;
};

Status status_of(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string line;
  if (!std::getline(file, line)) return {};
  const std::size_t name_end = line.rfind(')');  // the name before it may contain any character
  if (name_end == std::string::npos || name_end + 4 > line.size()) return {};
  return {line[name_end + 2], static_cast<pid_t>(std::strtol(line.c_str() + name_end + 4, nullptr, 10))};  // ") S 12 "
}

}  // namespace

std::string find_program(const std::string& program, const std::string& directory, std::string* why, int* code) {
  namespace fs = std::filesystem;
  const fs::path base = directory.empty() ? fs::path() : fs::path(directory);
  if (program.find('/') != std::string::npos) {
    const fs::path path = base / program;
    if (is_executable_file(path)) return program;  // the child is in `directory` at that time
    std::error_code error;
    *code = fs::exists(path, error) ? exit_not_executable : exit_not_found;
    *why = *code == exit_not_found
               ? fmt::format("there is no program '{}'", path.string())
               : fmt::format("'{}' cannot be executed: it is not an executable file (chmod +x?)", path.string());
    return {};
  }
  const char* path = std::getenv("PATH");
  std::string rest = path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
  for (std::size_t begin = 0; begin <= rest.size();) {
    const std::size_t end = std::min(rest.find(':', begin), rest.size());
    const fs::path folder = rest.substr(begin, end - begin);
    const fs::path candidate = (folder.is_absolute() ? folder : base / folder) / program;
    if (is_executable_file(candidate)) return fs::absolute(candidate).string();
    begin = end + 1;
  }
  *code = exit_not_found;
  std::error_code error;
  const bool here = fs::exists(base / program, error);
  *why = fmt::format("there is no program '{}' in PATH{}", program,
                     here ? fmt::format("; the working directory has one; expected: './{}'", program) : "");
  return {};
}

Processes::Processes(const sigset_t& rank_signals) : rank_signals_(rank_signals) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // orphans of the ranks become our children
  if (getrlimit(RLIMIT_NOFILE, &rank_files_) != 0) return;
  const rlimit raised = {rank_files_.rlim_max, rank_files_.rlim_max};
  setrlimit(RLIMIT_NOFILE, &raised);  // if it fails, the old limit may still suffice
}

int Processes::start(const Launch& launch, std::string* why, bool* not_found) {
  *not_found = false;
  const std::vector<char*> arguments = pointers(launch.arguments);
  const std::vector<char*> environment = pointers(launch.environment);
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) {
    *why = "open a pipe to it (ulimit -n)";
    return errno;
  }
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0)
    become_rank(launch, arguments.data(), environment.data(), rank_signals_, rank_files_, parent, report[1]);
  const int fork_error = errno;
  close(report[1]);
  if (pid < 0) {
    close(report[0]);
    *why = "fork (ulimit -u, or the container's limit on processes)";
    return fork_error;
  }
  setpgid(pid, pid);  // in both processes, so that it holds in both from here on
  Failure failure = {0, 0};
  ssize_t got;
  while ((got = read(report[0], &failure, sizeof failure)) < 0 && errno == EINTR) continue;
  close(report[0]);
  if (got == sizeof failure) {
    waitpid(pid, nullptr, 0);
    *why = step_names[static_cast<std::size_t>(failure.step)];
    *not_found = failure.step == step_execute && failure.error == ENOENT;
    return failure.error;
  }
  ranks_.push_back({pid, true});
  ++running_;
  return 0;
}

bool Processes::reap(Ended* ended) {
  siginfo_t information = {};
  // Checks without reaping: a process group is safe to signal only while its leader is not reaped.
  if (waitid(P_ALL, 0, &information, WEXITED | WNOHANG | WNOWAIT) != 0 || information.si_pid == 0) return false;
  ended->pid = information.si_pid;
  ended->rank = -1;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].pid != ended->pid || !ranks_[rank].running) continue;
    ended->rank = static_cast<int>(rank);
    ranks_[rank].running = false;
    --running_;
  }
  [[maybe_unused]] const pid_t reaped = waitpid(ended->pid, &ended->status, 0);
  assert(reaped == ended->pid);
  return true;
}

void Processes::signal_all(int signal) {
  for (const Rank& rank : ranks_)
    if (rank.running) kill(-rank.pid, signal);
}

std::map<char, std::vector<int>> Processes::states() const {
  std::map<char, std::vector<int>> found;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    if (ranks_[rank].running)
      found[status_of(std::to_string(ranks_[rank].pid)).state].push_back(static_cast<int>(rank));
  return found;
}

std::vector<pid_t> Processes::orphans(pid_t guard) const {
  std::vector<pid_t> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    pid_t pid = 0;
    const auto [rest, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (bad != std::errc() || rest != name.data() + name.size()) continue;
    if (pid == guard || status_of(name).parent != getpid()) continue;
    bool is_rank = false;
    for (const Rank& rank : ranks_) is_rank |= rank.running && rank.pid == pid;
    if (!is_rank) found.push_back(pid);
  }
  return found;
}

}  // namespace canele::run
