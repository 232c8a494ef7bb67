// SPDX-License-Identifier: BSD-3-Clause
//
// The cleaning process. See guard.hpp.
#include "apps/run/guard.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <set>
#include <stdexcept>

namespace canele::run {
namespace {

/// In the guard: leaves the user's terminal, files and signals alone.
void detach() {
  setsid();
  prctl(PR_SET_NAME, "canele-guard");
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);  // only SIGKILL ends it early
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : {0, 1, 2}) dup2(null, fd);  // a reader of our output must not wait for the guard
  [[maybe_unused]] const int ignored = chdir("/");
}

[[noreturn]] void watch(int pipe, const std::string& directory) {
  std::set<pid_t> alive;
  pid_t what;
  while (true) {
    const ssize_t got = read(pipe, &what, sizeof what);  // whole: such small writes to a pipe are atomic
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof what) break;
    if (what > 0)
      alive.insert(what);
    else
      alive.erase(-what);
  }
  for (const pid_t rank : alive) kill(-rank, SIGKILL);
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
  _exit(0);
}

}  // namespace

Guard::Guard(const std::string& directory) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error(fmt::format("pipe: {}", std::strerror(errno)));
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error(fmt::format("fork: {}", std::strerror(errno)));
  if (pid_ == 0) {
    detach();
    close(ends[1]);
    watch(ends[0], directory);
  }
  close(ends[0]);
  pipe_ = ends[1];
}

Guard::~Guard() {
  close(pipe_);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
}

void Guard::ended(pid_t rank) {
  const pid_t what = -rank;
  // Fails only if somebody killed the guard; the job can do without. SIGPIPE is ignored by then.
  [[maybe_unused]] const ssize_t written = write(pipe_, &what, sizeof what);
}

}  // namespace canele::run
