// SPDX-License-Identifier: BSD-3-Clause
//
// Stacks by gdb.
#include "apps/run/stacks.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <utility>

#include "apps/run/message.hpp"
#include "apps/run/processes.hpp"

namespace canele::run {

Stacks::Stacks(std::vector<Rank> ranks) : ranks_(std::move(ranks)) {
  std::string why;
  int code;
  gdb_ = find_program("gdb", "", &why, &code);
  if (gdb_.empty()) say("no stacks: gdb is not installed");
}

pid_t Stacks::start_next() {
  if (gdb_.empty() || next_ == ranks_.size()) return 0;
  const Rank rank = ranks_[next_++];
  say(fmt::format("stacks of rank {} (pid {}):", rank.rank, rank.pid));
  std::string pid = std::to_string(rank.pid);
  std::array<std::string, 9> words = {
      "gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-p", pid, "-ex", "thread apply all backtrace"};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", 0, 0);
  posix_spawn_file_actions_adddup2(&files, 2, 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);  // Ctrl-C is for us
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  pid_t started = 0;
  const int error = posix_spawn(&started, gdb_.c_str(), &files, &attributes, arguments.data(), environ);
  if (error != 0) {
    say(fmt::format("no stacks: '{}' cannot be started: {}", gdb_, std::strerror(error)));
    started = 0;
  }
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  return started;
}

}  // namespace canele::run
