// SPDX-License-Identifier: BSD-3-Clause
//
// OnDemandProgress: the on-demand progress thread ("on-demand thread"). It makes progress when no other thread does,
// because the program computes or the bound worker is inside a long callback.
//
// The engine starts, stops and notifies the on-demand thread; comm/engine/progress_demand.cpp decides when it is
// needed. Any thread may call these functions; start() and stop() are serialized inside.
//
// The on-demand thread checks at times of its own choice, so that posts need not wake it. A program that keeps calling
// the library pays one load for it, and never sees it run.
//
// If the on-demand thread may use only idle cores, the scheduler runs its checking thread only when nothing else wants
// the core. That thread takes no lock, since it would keep the lock for as long as its core is busy. So another thread
// finds out whether there is work, and helps.
//
// A thread that only posts, and goes on doing so, would have to share the engine with the on-demand thread step by
// step. The on-demand thread would end up doing all the posts for it. So such a thread is asked to make a step itself,
// at one of its posts (Coverage::poster_polls).
//
//   parked ──notify()──▶ checking ──needed──▶ helping: step, spin, yield, sleep (armed) ──not needed──▶ checking
//      ▲                  │   ▲│
//      └──nothing to do───┘   └┘ not needed now: checks again, after twice the time
//
// A thread that posts a long message expedites the on-demand thread. What arrives for that message wakes the on-demand
// thread, by the drivers' descriptors.
//
// Rejected: waking the on-demand thread at each post (a wake-up each).
// Rejected: a timer at each post (a system call each).
// Rejected: a timer at each long post (expensive in a virtual machine, and again when it expires on the program's
// core). Rejected: a worker that always runs (it takes part in every message, and two threads take turns where one
// would do).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "ltask/event_count.hpp"
#include "ltask/idle.hpp"
#include "ltask/platform.hpp"
#include "ltask/worker.hpp"

namespace canele::ltask {

/// What an on-demand thread makes progress for.
class ProgressSource : public Progress {
 public:
  enum class Coverage : std::uint8_t {
    guaranteed,    ///< a thread sleeps that will be woken for arrivals, and that notifies when its sleep ends.
    recent,        ///< a thread has made progress since the last check.
    poster_polls,  ///< a thread posts one message after the other, and has made no progress.
    needed         ///< no thread has made progress.
  };
  /// Checks once whether help is needed. Called by one thread at a time, some time after the previous check. Takes no
  /// lock.
  virtual Coverage check_coverage() = 0;
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
  virtual bool is_urgent() const { return true; }
  /// Returns whether other processes may need this one at any time, also while nothing is pending here. Naps are then
  /// short: `first_ns`, or up to four times that while another thread polls. Any thread, no lock.
  virtual bool serves_others() const { return false; }
  /// Returns where the program computes, as far as is known (OS index); -1: unknown. Any thread, no lock.
  virtual int program_unit() const { return -1; }
  /// Returns where the bound worker runs; -1: there is none. That unit is never idle when the worker is stuck.
  virtual int worker_unit() const { return -1; }

 protected:
  ~ProgressSource() = default;
};

class OnDemandProgress {
 public:
  enum class Kind : std::uint8_t {
    off,
    on_demand,   ///< checks, and helps
    idle_cores,  ///< both, but only while a core has nothing else to do
    timed        ///< makes one step at each check, needed or not
  };
  /// When the on-demand thread checks. The first check is after `first_ns` (eight times that if help is not urgent).
  /// While help is not needed, each further check comes after twice the time, up to `longest_ns`. If such a longest nap
  /// has found nothing to do `patience` times in a row, the on-demand thread parks. The longest naps end when the clock
  /// is at a multiple of `longest_ns`, and so at the same time on all ranks of a host. Each check takes the core from a
  /// rank, and ranks in step with that rank wait meanwhile. (Source: T. Jones et al., Improving the Scalability of
  /// Parallel Jobs by adding Parallel Awareness to the Operating System, SC 2003.)
  struct Pace {
    std::uint64_t first_ns = 50'000, longest_ns = 1'600'000;
    int patience = 2;
  };

  OnDemandProgress(Platform& platform, ProgressSource& source, Idle::Budget budget)
      : platform_(platform), source_(source), budget_(budget) {}
  ~OnDemandProgress() { stop(); }

  /// Starts the on-demand thread, and stops it first if it runs. Returns false if the system has no thread to give.
  bool start(Kind kind, Pace pace);
  /// Ends its threads; waits for their current step. Must not be called from one of them.
  void stop();
  Kind kind() const noexcept { return kind_.load(std::memory_order_relaxed); }

  /// Returns whether a thread that leaves work should call notify(). One plain load.
  bool wants_notify() const noexcept { return event_count_.wants_notify(); }
  /// Returns whether the on-demand thread will not check before it is notified.
  bool parked() const noexcept { return event_count_.has_waiter(); }
  /// Returns whether the on-demand thread will check, but not soon. If what has been posted takes long, call
  /// expedite(). One plain load.
  bool is_idle() const noexcept { return idle_.load(std::memory_order_relaxed); }
  enum class Because : std::uint8_t { there_is_work, something_will_come };
  /// Makes the on-demand thread check soon, or when something has arrived, unless cancel_expedite() comes first. Costs
  /// some system calls; wakes no thread. Does nothing if it has been in vain too often.
  void expedite(Because because) noexcept;
  /// Returns whether the on-demand thread was expedited and has not checked since. One plain load.
  bool expedited() const noexcept { return call_.load(std::memory_order_seq_cst) == Call::made; }
  /// was_called(): whether a thread that begins to wait should call cancel_expedite(). One plain load.
  /// cancel_expedite() undoes expedite(), because the caller makes progress itself.
  bool was_called() const noexcept { return call_.load(std::memory_order_relaxed) != Call::none; }
  void cancel_expedite() noexcept;
  /// Reports work that no other thread may come back for. Call it after making the work visible. Returns true if the
  /// caller should make a step itself, in place of the on-demand thread.
  bool notify() noexcept;
  /// Returns whether the on-demand thread is helping, and sleeps on the drivers. Progress::wake() makes it check again.
  bool asleep() const noexcept { return asleep_.load(std::memory_order_seq_cst); }
  /// Returns whether the on-demand thread makes progress now. For reports.
  bool helping() const noexcept { return self_.load(std::memory_order_relaxed) != nullptr; }
  std::uint64_t core_losses() const noexcept { return contention_.times(); }
  /// assume_contention(): compute threads want the on-demand thread's core all the time. prefer(): the unit on which
  /// the on-demand thread sleeps then. Both before start().
  void assume_contention() noexcept { contention_.assume(); }
  void prefer(int unit) noexcept { contention_.prefer(unit); }
  /// Returns true if the calling thread is helping.
  bool is_caller() const noexcept;

 private:
  void check_loop();
  void help_loop();
  void check();
  void nap();
  std::uint64_t nap_length();
  void park();
  void avoid_unit(int unit, int* avoided);
  void find_idle_core();
  void stand_back();
  bool is_away();
  void regain_trust() noexcept;
  bool has_work();
  bool help();
  void turn();
  bool may_help();
  bool should_stay_awake() const;
  std::uint64_t first_ns() const;

  Platform& platform_;
  ProgressSource& source_;
  Idle::Budget budget_;
  CpuContention contention_;  ///< of compute threads on its core
  Pace pace_;
  std::mutex mutex_;  // start and stop only
  std::unique_ptr<PlatformThread> checking_, helping_;
  std::atomic<Kind> kind_{Kind::off};
  std::uint64_t nap_ns_ = 0;      ///< of the checking thread: length of its nap.
  bool covered_ = false;          ///< of the checking thread: another thread had polled when it checked last.
  int in_vain_ = 0;               ///< how often there was nothing to do.
  int rests_ = 0;                 ///< number of its longest naps since it last helped.
  std::atomic<int> trust_{0};     ///< see expedite().
  std::unique_ptr<Alarm> alarm_;  ///< for its naps.
  std::atomic<bool> stopping_{false}, asleep_{false}, idle_{false};
  enum class Call : std::uint8_t { none, made, spared };
  std::atomic<Call> call_{Call::none};
  std::atomic<std::uint64_t> posted_ns_{0};       ///< when it was called, or the call was omitted.
  int avoided_ = -1;                              ///< of the checking thread: the core that it keeps off.
  EventCount event_count_;                        ///< for the checking thread.
  static constexpr int most_trust = 16, use = 4;  ///< one useful call makes up for this many useless ones.
  static constexpr std::uint32_t free = 0, asked = 1, helps = 2, ended = 3;
  std::atomic<std::uint32_t> assigned_{free};  ///< idle cores: both threads sleep on it.
  std::atomic<bool> answer_{false};            ///< to the last question.
  std::atomic<std::uint64_t> lease_{0};        ///< idle cores: it may help until then, because a core was idle.
  std::atomic<const void*> self_{nullptr};     ///< the thread in help().
};

}  // namespace canele::ltask
