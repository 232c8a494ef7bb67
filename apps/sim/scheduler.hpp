// SPDX-License-Identifier: BSD-3-Clause
//
// Scheduler: runs the fibers of a simulated world on virtual time. One seed decides which fiber runs when.
//
// Used by the world and, through SimPlatform, by the engines. One thread. A fiber loses its core only where it calls
// the platform or a driver. Between two such points it runs undisturbed. Data races are therefore not found here (TSan
// finds them), but every order of the steps can occur.
//
//   Timeline ──"resume fiber"──▶ Fiber ──spend / park / pause──▶ Timeline
//                  └─ its core has another thread: waits for its turn
//
// Threads have cores of their own, except those that core_for() puts together. These have turns of a scheduler's slice.
// A thread that sleeps or yields ends its own turn.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apps/sim/fiber.hpp"
#include "drivers/sim/timeline.hpp"

namespace canele::sim {

using drivers::sim::Bells;
using drivers::sim::Dice;
using drivers::sim::Timeline;

class Scheduler {
 public:
  struct Thread;
  /// A core that executes one thread at a time, or several cores that share their threads and execute one each.
  struct Core {
    static constexpr std::uint64_t slice_ns = 3'000'000;
    unsigned idle = 1;
    std::deque<Thread*> ready = {};  ///< threads that could run
    std::uint64_t busy_ns = 0;       ///< so far
  };
  /// One thread of one process (rank).
  struct Thread {
    std::string name;
    int rank = -1;
    std::unique_ptr<Fiber> fiber;
    std::uint64_t debt_ns = 0;  ///< time worked that has not yet passed
    std::uint64_t resumes_at = 0;
    std::uint64_t turn = 0;  ///< number of a resume on the timeline; other numbers are stale
    bool waits = false;      ///< for wake() or a time
    bool done = false, killed = false;
    int callback_depth = 0;  ///< the engine's thread-local, see world.cpp
    const char* doing = "";  ///< for the wait-for graph
    Core* core = nullptr;    ///< nullptr: one of its own
    bool has_turn = false;   ///< has the core, until `turn_ends` if other threads could run
    std::uint64_t turn_ends = 0;
  };
  /// Saves and restores what the engine keeps per thread.
  struct Locals {
    std::function<int()> get;
    std::function<void(int)> set;
  };

  Scheduler(Timeline& timeline, Dice dice, Locals locals)
      : timeline_(timeline), dice_(dice), locals_(std::move(locals)) {}

  Thread& spawn(std::string name, int rank, std::function<void()> body);
  /// Chooses the core of a new thread. Cores outlive the threads.
  std::function<Core*(const Thread&)> core_for;
  /// Returns the running thread, or nullptr outside of all threads.
  Thread* current() const { return current_; }

  // ---- from inside a thread ---------------------------------------------------------------------------------------
  /// Works for that long; other threads may run meanwhile.
  void spend(std::uint64_t ns);
  /// Lets other threads run for that long, at least one of them.
  void pause_for(std::uint64_t ns);
  /// Sleeps until wake(), at most that long (~0: for ever).
  void sleep(std::uint64_t timeout_ns, const char* doing);

  // ---- from anywhere ----------------------------------------------------------------------------------------------
  void wake(Thread& thread);
  /// Kills a rank: the threads of its process never run again.
  void kill(int rank);
  /// Returns how many processes of the rank have been killed. The number identifies its present process.
  int process_of(int rank) const {
    const auto found = kills_.find(rank);
    return found == kills_.end() ? 0 : found->second;
  }
  /// Stops the rank's threads for that long.
  void starve(int rank, std::uint64_t ns);
  /// Runs until `done`, until nothing can happen any more, or until virtual time `until`. Returns true if done.
  bool run(const std::function<bool()>& done, std::uint64_t until);

  const std::vector<std::unique_ptr<Thread>>& threads() const { return threads_; }
  std::uint64_t switches() const { return switches_; }
  /// Returns the bytes of memory that the stacks of all threads take.
  std::size_t resident_stacks() const;
  /// Sets the speed of a rank's threads: each nanosecond of work takes `factor` nanoseconds.
  void slow_down(int rank, unsigned factor) { slowness_[rank] = factor; }

 private:
  void resume_at(Thread& thread, std::uint64_t time);
  void resume(Thread& thread);
  void release_core(Thread& thread);
  bool take_turn(Thread& thread);
  void begin_turn(Thread& thread);
  void end_turn(Thread& thread);
  void end_turn_after(Thread& thread, std::uint64_t ns);

  Timeline& timeline_;
  Dice dice_;
  Locals locals_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::map<int, std::uint64_t> starved_until_;
  std::map<int, unsigned> slowness_;
  std::map<int, int> kills_;
  Thread* current_ = nullptr;
  std::uint64_t switches_ = 0;
};

}  // namespace canele::sim
