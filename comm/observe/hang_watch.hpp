// SPDX-License-Identifier: BSD-3-Clause
//
// HangWatch: detects that an engine has been silent for too long with requests pending, and measures the age of a
// request.
//
// Used by the engine: posts read the tick, idle threads check (diagnose/hang_collect.hpp), data transfers are noted.
// Any thread may call the functions of the first section below; those of the second require the engine's lock.
//
// No message costs a clock read. A request stores the number of the last check before it, the tick. The times of the
// checks are kept, fewer of them with growing age. So an age means "at least": it is short by at most one interval of
// checking.
//
//   checks: ──┬────┬────┬────────┬──▶ time        tick  3    4    5        6
//             3    4    5   ↑    6                a request posted here has tick 5: it is older than check 6
//
// Rejected: a time in every request (a clock read for each message).
// Rejected: a thread of our own (the library is a guest in its process).
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace canele::comm {

class HangWatch {
 public:
  /// limit_ns: silence before a report, in ns; 0: never (ages are measured anyway).
  HangWatch(std::uint64_t limit_ns, std::uint64_t now_ns);

  // ---- any thread -----------------------------------------------------------------------------------------------
  std::uint32_t tick() const { return tick_.load(std::memory_order_relaxed); }
  std::uint64_t limit_ns() const { return limit_ns_; }
  /// Returns the longest sleep of a thread that sleeps for an engine, so that checks continue.
  std::uint64_t interval_ns() const { return interval_ns_; }
  /// Called when a poll found nothing. Returns true once in many polls: then check. (A count lost to another thread
  /// does not matter.)
  bool idle_turn() {
    const std::uint64_t turns = idle_turns_.load(std::memory_order_relaxed) + 1;
    idle_turns_.store(turns, std::memory_order_relaxed);
    return turns % turns_per_check == 0;
  }
  /// Returns true for one caller in each interval.
  bool due(std::uint64_t now_ns);
  /// Called when bytes of a large message have moved.
  void moved() { moved_.fetch_add(1, std::memory_order_relaxed); }
  /// Records whether the last attempt to sleep had all drivers armed and nothing to do.
  void armed(bool well) { armed_.store(well, std::memory_order_relaxed); }
  bool armed() const { return armed_.load(std::memory_order_relaxed); }
  std::uint64_t moves() const { return moved_.load(std::memory_order_relaxed); }

  // ---- under the lock -------------------------------------------------------------------------------------------
  /// The observations of one check.
  struct Sight {
    std::uint64_t now_ns = 0;
    std::uint64_t pulse = 0;          ///< changes with every packet and every completion.
    std::uint64_t pending = 0;        ///< number of requests.
    std::uint64_t sends = 0;          ///< number of sends among them.
    std::uint64_t waiting_since = 0;  ///< of the thread that has been blocked for the longest time; 0: none
  };
  /// Evaluates a check. Returns true if a report is due, once for each silence.
  bool see(const Sight& sight);
  /// The part of see() that a report on demand needs as well.
  void note(std::uint64_t pulse, std::uint64_t now_ns);
  /// Returns the least age, in ns, of a request posted at `tick`.
  std::uint64_t age_ns(std::uint32_t tick, std::uint64_t now_ns) const;
  std::uint64_t silent_ns(std::uint64_t now_ns) const { return now_ns - silent_since_; }
  /// Returns for how long at least, in ns, no thread has polled in vain. Call it before note().
  std::uint64_t unpolled_ns(std::uint64_t now_ns) const;

 private:
  /// Advances the tick: requests posted from now on are younger than `now_ns`.
  void mark(std::uint64_t now_ns);
  void forget_one(std::uint64_t now_ns);
  static constexpr std::uint64_t turns_per_check = 1024;
  static constexpr std::size_t most_marks = 64;
  struct Mark {
    std::uint32_t tick;
    std::uint64_t ns;
  };

  const std::uint64_t limit_ns_, interval_ns_;
  std::atomic<std::uint32_t> tick_{0};
  alignas(64) std::atomic<std::uint64_t> idle_turns_{0};  // own line: spinning threads write it, posts read the tick
  std::atomic<std::uint64_t> moved_{0};
  std::atomic<std::uint64_t> next_check_;
  std::atomic<bool> armed_{false};

  std::uint64_t pulse_ = 0, silent_since_, last_check_, sends_since_ = 0;
  bool reported_ = false;
  std::uint64_t polled_turns_ = 0, polled_at_;
  std::vector<Mark> marks_;  ///< ascending
};

/// Time of the last event of a counter, as observed by the checks.
struct LastEvent {
  std::uint64_t events = 0, seen_ns = 0;
  std::uint64_t polls = 0;  ///< polls of a driver at that moment

  void update(std::uint64_t now_events, std::uint64_t now_polls, std::uint64_t now_ns) {
    if (events == now_events && seen_ns != 0) return;
    *this = {now_events, now_ns, now_polls};
  }
  std::uint64_t quiet_ns(std::uint64_t now_ns) const { return seen_ns == 0 ? 0 : now_ns - seen_ns; }
};

}  // namespace canele::comm
