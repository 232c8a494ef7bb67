// SPDX-License-Identifier: BSD-3-Clause
//
// Helper: makes progress when nobody else does: the program computes, or the bound worker sits in a long callback.
//
// Who: the engine starts and stops it, and summons it; comm/core/help.cpp says when it is needed.
// Threads: start and stop by any, serialised inside; the rest by any.
// Surprise: it looks after some time of its own choice, so that posts need not wake anybody: a program that keeps
//     coming back never meets it, and pays one load for it. Where it may use idle cores only, who looks is a thread
//     that the scheduler runs when nothing else wants the core. It takes no lock, since it would keep it for as long as
//     its core is busy: who asks whether there is work, and helps, is another thread.
//
// A thread that only posts, and goes on doing so, would have to share the engine with a helper turn by turn, and be
// left to do all its posts for it. So it is asked to make a turn itself, at one of its posts (in_passing).
//
//   parked ──summon()──▶ looking ──needed──▶ helping: step, spin, yield, sleep (armed) ──not needed──▶ looking
//      ▲                  │   ▲│
//      └──nothing to do───┘   └┘ not needed now: look again, after twice the time
//
// Who posts what takes long calls it: what comes for that wakes it, by the drivers' descriptors.
//
// Rejected: to wake it at each post (some microseconds each); to set a timer at each post (a system call each), or at
//     each long one (10 us in a virtual machine, 13 when it expires, on the program's core); a worker that always runs
//     (it takes part in every message, and two threads take turns where one would do).
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

/// What a helper looks after.
class Helped : public Progress {
 public:
  enum class Sight : std::uint8_t {
    covered,     ///< somebody sleeps who will be woken for what comes, and summons when that ends
    attended,    ///< somebody has made progress since the last look
    in_passing,  ///< somebody posts one message after the other, and has made none
    unattended   ///< nobody has
  };
  /// One look, by one thread at a time, some time after the one before. Takes no lock.
  virtual Sight look() = 0;
  /// There is something to do. May take locks.
  virtual bool unfinished() = 0;
  /// One turn of who helps: how much it did; -1: it is not needed any more.
  virtual int help() = 0;
  /// Others make progress again, as far as who is about to sleep can tell without a lock.
  virtual bool others_progress() = 0;
  /// Readable when something has come, but only as long as heeds_arrivals(); -1: there is none.
  virtual int descriptor() const { return -1; }
  /// There is nothing to do until the descriptor is readable, which it is not now. Any thread, no lock.
  virtual bool heeds_arrivals() { return false; }
  /// What is to be done waits for this process only. Any thread, no lock.
  virtual bool in_haste() const { return true; }
  /// Where the program computes, as far as it is known (OS index); -1: unknown. Any thread, no lock.
  virtual int program_unit() const { return -1; }
  /// Where the bound worker runs, which is never idle when it is stuck; -1: there is none.
  virtual int worker_unit() const { return -1; }

 protected:
  ~Helped() = default;
};

class Helper {
 public:
  enum class Kind : std::uint8_t {
    off,
    on_demand,   ///< looks, and helps
    idle_cores,  ///< both only while a core has nothing else to do
    timed        ///< makes one turn at each look, needed or not
  };
  /// When it looks: after `first_ns` (eight times that where there is no haste), and after twice the time as long as it
  /// is not needed, up to `longest_ns`. When that has found nothing to do `patience` times in a row it parks.
  /// The longest naps end when the clock is at a multiple of `longest_ns`, so those of all ranks of a host do together:
  /// each look takes the core from a rank, and ranks in step with that one wait for it meanwhile (T. Jones et al.,
  /// Improving the Scalability of Parallel Jobs by adding Parallel Awareness to the Operating System, SC 2003).
  struct Pace {
    std::uint64_t first_ns = 50'000, longest_ns = 1'600'000;
    int patience = 2;
  };

  Helper(Platform& platform, Helped& helped, Idle::Budget budget)
      : platform_(platform), helped_(helped), budget_(budget) {}
  ~Helper() { stop(); }

  /// Starts it; false: the system has no thread to give. It is stopped first if it runs.
  bool start(Kind kind, Pace pace);
  /// Ends its threads; waits for their current turn. Not from one of them.
  void stop();
  Kind kind() const noexcept { return kind_.load(std::memory_order_relaxed); }

  /// Who leaves work should summon() it. One plain load.
  bool calls() const noexcept { return summons_.calls(); }
  /// It will not look before it is summoned.
  bool parked() const noexcept { return summons_.awaited(); }
  /// It will look, but not soon: if what has been posted takes long, hasten(). One plain load.
  bool dozes() const noexcept { return dozes_.load(std::memory_order_relaxed); }
  enum class Because : std::uint8_t { there_is_work, something_will_come };
  /// It looks soon, or when something has come, unless somebody makes progress before: relent(). Some system calls;
  /// nobody is woken. Not if that has been in vain too often.
  void hasten(Because because) noexcept;
  /// It was hastened, and has not looked since. One plain load.
  bool hastened() const noexcept { return call_.load(std::memory_order_seq_cst) == Call::made; }
  /// Who begins to wait should relent(). One plain load.
  bool was_called() const noexcept { return call_.load(std::memory_order_relaxed) != Call::none; }
  void relent() noexcept;
  /// There is something to do that nobody may come back for. Call after making it visible. True: the caller should make
  /// a turn itself, so that the helper need not.
  bool summon() noexcept;
  /// It helps, and sleeps on the drivers: Progress::wake() makes it think again.
  bool asleep() const noexcept { return asleep_.load(std::memory_order_seq_cst); }
  /// It makes progress now. For reports.
  bool helping() const noexcept { return self_.load(std::memory_order_relaxed) != nullptr; }
  std::uint64_t turns_lost() const noexcept { return pressure_.times(); }
  /// Threads that compute want its core all the time, and where it sleeps then. Before start().
  void expect_company() noexcept { pressure_.expect(); }
  void prefer(int unit) noexcept { pressure_.prefer(unit); }
  /// True if the calling thread is helping.
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
  Pressure pressure_;  ///< on its core
  Pace pace_;
  std::mutex mutex_;  // start and stop only
  std::unique_ptr<PlatformThread> looking_, helping_;
  std::atomic<Kind> kind_{Kind::off};
  std::uint64_t nap_ns_ = 0;      ///< of who looks: how long it naps,
  int in_vain_ = 0;               ///< how often there was nothing to do
  int rests_ = 0;                 ///< its longest naps since it has helped
  std::atomic<int> trust_{0};     ///< see hasten()
  std::unique_ptr<Alarm> alarm_;  ///< its naps
  std::atomic<bool> stopping_{false}, asleep_{false}, dozes_{false};
  enum class Call : std::uint8_t { none, made, spared };
  std::atomic<Call> call_{Call::none};
  std::atomic<std::uint64_t> posted_ns_{0};       ///< when it was called, or was spared it
  int left_ = -1;                                 ///< of who looks: the core that it keeps off
  Summons summons_;                               ///< for who looks
  static constexpr int most_trust = 16, use = 4;  ///< one haste of use makes up for so many of none
  static constexpr std::uint32_t free = 0, asked = 1, helps = 2, ended = 3;
  std::atomic<std::uint32_t> assigned_{free};  ///< idle cores: both threads sleep on it
  std::atomic<bool> answer_{false};            ///< to the last question
  std::atomic<std::uint64_t> lease_{0};        ///< idle cores: until then it may help, as there was one
  std::atomic<const void*> self_{nullptr};     ///< the thread in help()
};

}  // namespace canele::ltask
