// SPDX-License-Identifier: BSD-3-Clause
//
// The cleaning process.
#include "apps/run/guard.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>

namespace canele::run {
namespace {

constexpr int most_checks = 200;
constexpr int most_inherited = 1024;  // descriptors that the caller of canele-run has left open for it

/// Runs in the guard. Detaches it from the user's terminal, files and signals; keeps only the descriptor `pipe`.
void detach(int pipe) {
  setsid();
  prctl(PR_SET_NAME, "canele-guard");
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);  // only SIGKILL ends it early
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  // Closes our output, so that its reader never waits for the guard, whatever descriptor number it has.
  for (const int fd : {0, 1, 2}) dup2(null, fd);
  dup2(pipe, 3);
  for (int fd = 4; fd < most_inherited; ++fd) close(fd);
  [[maybe_unused]] const int ignored = chdir("/");
}

/// Tells whether the process was started with `mark` in its environment. Processes of other users are not readable.
bool has_mark(const std::filesystem::path& process, const std::string& mark) {
  std::ifstream file(process / "environ", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::string sought = mark + '\0';
  return text.starts_with(sought) || text.find('\0' + sought) != std::string::npos;
}

/// Kills the processes with `mark`. Returns how many it found.
int kill_marked(const std::string& mark) {
  int found = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos || !has_mark(entry->path(), mark)) continue;
    kill(static_cast<pid_t>(std::stol(name)), SIGKILL);
    ++found;
  }
  return found;
}

[[noreturn]] void watch(int pipe, const std::string& directory, const std::string& mark) {
  std::set<pid_t> alive;
  pid_t what;
  while (true) {
    const ssize_t got = read(pipe, &what, sizeof what);  // never partial: such small writes to a pipe are atomic
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof what) break;
    if (what > 0)
      alive.insert(what);
    else
      alive.erase(-what);
  }
  for (const pid_t rank : alive) kill(-rank, SIGKILL);
  // Repeats the search, because a process may have started another one. Does not wait for a process that cannot die
  // yet.
  for (int check = 0; kill_marked(mark) > 0 && check < most_checks; ++check) poll(nullptr, 0, 10);
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
  _exit(0);
}

}  // namespace

Guard::Guard(const std::string& directory) : mark_("PMI_CANELE_JOB=" + directory) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error(fmt::format("pipe: {} (ulimit -n)", std::strerror(errno)));
  pid_ = fork();
  if (pid_ < 0) {
    const int error = errno;
    close(ends[0]);
    close(ends[1]);
    throw std::runtime_error(
        fmt::format("fork: {} (ulimit -u, or the container's limit on processes)", std::strerror(error)));
  }
  if (pid_ == 0) {
    detach(ends[0]);
    watch(3, directory, mark_);
  }
  close(ends[0]);
  pipe_ = ends[1];
}

Guard::~Guard() {
  close(pipe_);
  kill(pid_, SIGCONT);  // a stopped guard would make us wait for ever
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
}

void Guard::ended(pid_t rank) {
  const pid_t what = -rank;
  // Fails only if the guard was killed; the job can do without it. SIGPIPE is ignored at this point.
  [[maybe_unused]] const ssize_t written = write(pipe_, &what, sizeof what);
}

}  // namespace canele::run
