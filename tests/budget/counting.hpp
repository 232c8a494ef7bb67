// SPDX-License-Identifier: BSD-3-Clause
//
// Runs the steps of a message's path in turn, and lets callgrind count one of them. One thread.
//
// Before a counted step the simulated cache is emptied, by a walk that is not counted. So the step's misses are the
// lines that it touches, each once. The stack frame above a step begins on a cache line of its own. Otherwise the start
// of the stack, which depends on the environment's names, would decide how many lines a step's variables occupy.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else  // without valgrind's headers: it builds, and counts nothing
#define CALLGRIND_TOGGLE_COLLECT static_cast<void>(0)
#define CALLGRIND_DUMP_STATS_AT(name) static_cast<void>(name)
#define RUNNING_ON_VALGRIND 0
#endif

namespace canele::test::budget {

inline void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "budget: %s\n", what);
  std::exit(1);
}

template <typename World>
struct Step {
  const char* name;  ///< nullptr: the step is never counted
  void (*run)(World&);
};

/// Reads more than the simulated cache holds (`--D1`, set by callgrind.py).
[[gnu::noinline]] inline void empty_cache() {
  constexpr std::size_t size = 256 << 10, line = 64;
  alignas(line) static char lines[size];
  for (std::size_t at = 0; at < size; at += line) *const_cast<volatile char*>(lines + at);
}

template <typename World>
[[gnu::noinline]] void run_counted(const Step<World>& step, World& world) {
  alignas(64) char own_line[64];
  asm volatile("" : : "r"(own_line) : "memory");
  empty_cache();
  if constexpr (requires { world.before_step(); }) world.before_step();
  CALLGRIND_TOGGLE_COLLECT;
  step.run(world);
  CALLGRIND_TOGGLE_COLLECT;
}

/// Runs all steps for some rounds, so that caches, pools and tables are as in the steady state.
template <typename World>
void warm_up(World& world, const std::vector<Step<World>>& steps, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (const Step<World>& step : steps) step.run(world);
  }
}

/// Biases the lock of each engine of a job to this thread, which then enters it by plain stores
/// (ltask/submit_lock.hpp).
template <typename Job>
void own_the_locks(Job& job) {
  for (int rank = 0; rank < job.size(); ++rank) job.engine(rank).enable_lock_bias(true);
  constexpr int enough = 5000;  // steps in a row
  for (int i = 0; i < enough; ++i) job.step_all();
}

/// Counts each step in turn, over `rounds` rounds. Dumps the counts of a step as "CASE STEP ROUNDS MESSAGES".
template <typename World>
void count(const std::string& name, World& world, const std::vector<Step<World>>& steps, int messages_a_round,
           int rounds = 64) {
  for (const Step<World>& counted : steps) {
    if (counted.name == nullptr) continue;
    for (int round = 0; round < rounds; ++round) {
      for (const Step<World>& step : steps) {
        if (&step == &counted) {
          run_counted(step, world);
        } else {
          step.run(world);
        }
      }
    }
    const std::string title =
        name + " " + counted.name + " " + std::to_string(rounds) + " " + std::to_string(rounds * messages_a_round);
    CALLGRIND_DUMP_STATS_AT(title.c_str());
  }
}

}  // namespace canele::test::budget
