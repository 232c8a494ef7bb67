// SPDX-License-Identifier: BSD-3-Clause
//
// Helper: on-demand progress. It makes progress when no other thread does, because the program computes or the bound
// worker is inside a long callback.
//
// The engine starts, stops and summons the helper; comm/engine/progress_demand.cpp decides when it is needed. Any
// thread may call these functions; start() and stop() are serialized inside.
//
// The helper checks at times of its own choice, so that posts need not wake it. A program that keeps calling the
// library pays one load for it, and never sees it run.
//
// If the helper may use only idle cores, the scheduler runs its checking thread only when nothing else wants the core.
// That thread takes no lock, since it would keep the lock for as long as its core is busy. So another thread finds out
// whether there is work, and helps.
//
// A thread that only posts, and goes on doing so, would have to share the engine with the helper step by step. The
// helper would end up doing all the posts for it. So such a thread is asked to make a step itself, at one of its posts
// (in_passing).
//
//   parked ──summon()──▶ looking ──needed──▶ helping: step, spin, yield, sleep (armed) ──not needed──▶ looking
//      ▲                  │   ▲│
//      └──nothing to do───┘   └┘ not needed now: look again, after twice the time
//
// A thread that posts a long message hastens the helper. What arrives for that message wakes the helper, by the
// drivers' descriptors.
//
// Rejected: waking the helper at each post (a wake-up each).
// Rejected: a timer at each post (a system call each).
// Rejected: a timer at each long post (expensive in a virtual machine, and again when it expires on the program's
// core). Rejected: a worker that always runs (it takes part in every message, and two threads take turns where one
// would do).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "ltask/idle.hpp"
#include "ltask/platform.hpp"
#include "ltask/summons.hpp"
#include "ltask/worker.hpp"

namespace canele::ltask {

/// What a helper makes progress for.
class Helped : public Progress {
 public:
  enum class Sight : std::uint8_t {
    covered,     ///< a thread sleeps that will be woken for arrivals, and that summons when its sleep ends.
    attended,    ///< a thread has made progress since the last check.
    in_passing,  ///< a thread posts one message after the other, and has made no progress.
    unattended   ///< no thread has made progress.
  };
  /// Checks once whether help is needed. Called by one thread at a time, some time after the previous check. Takes no
  /// lock.
  virtual Sight look() = 0;
  /// Returns whether there is something to do. May take locks.
  virtual bool unfinished() = 0;
  /// Makes one helping step. Returns how much it did; -1: help is not needed any more.
  virtual int help() = 0;
  /// Returns whether other threads make progress again, as far as a thread that is about to sleep can tell without a
  /// lock.
  virtual bool others_progress() = 0;
  /// Returns a descriptor that becomes readable on arrivals, but only after heeds_arrivals() returned true; -1: there
  /// is none.
  virtual int descriptor() const { return -1; }
  /// Returns true if there is nothing to do until the descriptor becomes readable. Any thread, no lock.
  virtual bool heeds_arrivals() { return false; }
  /// Returns whether help is urgent, because the pending work waits for this process only. Any thread, no lock.
  virtual bool in_haste() const { return true; }
  /// Returns where the program computes, as far as is known (OS index); -1: unknown. Any thread, no lock.
  virtual int program_unit() const { return -1; }
  /// Returns where the bound worker runs; -1: there is none. That unit is never idle when the worker is stuck.
  virtual int worker_unit() const { return -1; }

 protected:
  ~Helped() = default;
};

class Helper {
 public:
  enum class Kind : std::uint8_t {
    off,
    on_demand,   ///< checks, and helps
    idle_cores,  ///< both, but only while a core has nothing else to do
    timed        ///< makes one step at each check, needed or not
  };
  /// When the helper checks. The first check is after `first_ns` (eight times that if help is not urgent). While help
  /// is not needed, each further check comes after twice the time, up to `longest_ns`. If such a longest nap has found
  /// nothing to do `patience` times in a row, the helper parks. The longest naps end when the clock is at a multiple of
  /// `longest_ns`, and so at the same time on all ranks of a host. Each check takes the core from a rank, and ranks in
  /// step with that rank wait meanwhile. (Source: T. Jones et al., Improving the Scalability of Parallel Jobs by adding
  /// Parallel Awareness to the Operating System, SC 2003.)
  struct Pace {
    std::uint64_t first_ns = 50'000, longest_ns = 1'600'000;
    int patience = 2;
  };

  Helper(Platform& platform, Helped& helped, Idle::Budget budget)
      : platform_(platform), helped_(helped), budget_(budget) {}
  ~Helper() { stop(); }

  /// Starts the helper, and stops it first if it runs. Returns false if the system has no thread to give.
  bool start(Kind kind, Pace pace);
  /// Ends the helper's threads; waits for their current step. Must not be called from one of them.
  void stop();
  Kind kind() const noexcept { return kind_.load(std::memory_order_relaxed); }

  /// Returns whether a thread that leaves work should summon(). One plain load.
  bool calls() const noexcept { return summons_.calls(); }
  /// Returns whether the helper will not check before it is summoned.
  bool parked() const noexcept { return summons_.awaited(); }
  /// Returns whether the helper will check, but not soon. If what has been posted takes long, call hasten(). One plain
  /// load.
  bool dozes() const noexcept { return dozes_.load(std::memory_order_relaxed); }
  enum class Because : std::uint8_t { there_is_work, something_will_come };
  /// Makes the helper check soon, or when something has arrived, unless relent() comes first. Costs some system calls;
  /// wakes no thread. Does nothing if it has been in vain too often.
  void hasten(Because because) noexcept;
  /// Returns whether the helper was hastened and has not checked since. One plain load.
  bool hastened() const noexcept { return call_.load(std::memory_order_seq_cst) == Call::made; }
  /// was_called(): whether a thread that begins to wait should relent(). One plain load. relent() takes hasten() back,
  /// because the caller makes progress itself.
  bool was_called() const noexcept { return call_.load(std::memory_order_relaxed) != Call::none; }
  void relent() noexcept;
  /// Reports work that no other thread may come back for. Call it after making the work visible. Returns true if the
  /// caller should make a step itself, in place of the helper.
  bool summon() noexcept;
  /// Returns whether the helper is helping, and sleeps on the drivers. Progress::wake() makes it check again.
  bool asleep() const noexcept { return asleep_.load(std::memory_order_seq_cst); }
  /// Returns whether the helper makes progress now. For reports.
  bool helping() const noexcept { return self_.load(std::memory_order_relaxed) != nullptr; }
  std::uint64_t core_losses() const noexcept { return pressure_.times(); }
  /// expect_company(): compute threads want the helper's core all the time. prefer(): the unit on which the helper
  /// sleeps then. Both before start().
  void expect_company() noexcept { pressure_.expect(); }
  void prefer(int unit) noexcept { pressure_.prefer(unit); }
  /// Returns true if the calling thread is helping.
  bool is_caller() const noexcept;

 private:
  void look_loop();
  void help_loop();
  void look();
  void nap();
  std::uint64_t nap_length();
  void park();
  void leave(int unit, int* left);
  void find_idle_core();
  void stand_back();
  bool is_away();
  void regain_trust() noexcept;
  bool needed();
  bool help();
  void turn();
  bool may_help();
  bool should_stay_awake() const;
  std::uint64_t first_ns() const;

  Platform& platform_;
  Helped& helped_;
  Idle::Budget budget_;
  Pressure pressure_;  ///< of compute threads on its core
  Pace pace_;
  std::mutex mutex_;  // start and stop only
  std::unique_ptr<PlatformThread> looking_, helping_;
  std::atomic<Kind> kind_{Kind::off};
  std::uint64_t nap_ns_ = 0;      ///< of the checking thread: length of its nap.
  int in_vain_ = 0;               ///< how often there was nothing to do.
  int rests_ = 0;                 ///< number of its longest naps since it last helped.
  std::atomic<int> trust_{0};     ///< see hasten().
  std::unique_ptr<Alarm> alarm_;  ///< for its naps.
  std::atomic<bool> stopping_{false}, asleep_{false}, dozes_{false};
  enum class Call : std::uint8_t { none, made, spared };
  std::atomic<Call> call_{Call::none};
  std::atomic<std::uint64_t> posted_ns_{0};       ///< when it was called, or the call was omitted.
  int left_ = -1;                                 ///< of the checking thread: the core that it keeps off.
  Summons summons_;                               ///< for the checking thread.
  static constexpr int most_trust = 16, use = 4;  ///< one useful call makes up for this many useless ones.
  static constexpr std::uint32_t free = 0, asked = 1, helps = 2, ended = 3;
  std::atomic<std::uint32_t> assigned_{free};  ///< idle cores: both threads sleep on it.
  std::atomic<bool> answer_{false};            ///< to the last question.
  std::atomic<std::uint64_t> lease_{0};        ///< idle cores: it may help until then, because a core was idle.
  std::atomic<const void*> self_{nullptr};     ///< the thread in help().
};

}  // namespace canele::ltask
