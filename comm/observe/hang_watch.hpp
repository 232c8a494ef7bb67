// SPDX-License-Identifier: BSD-3-Clause
//
// HangWatch: when has an engine been silent for too long with something stuck, and how old is a request?
//
// Who: the engine: posts read the tick, idle threads look (hang_collect.hpp), moving data is noted.
// Threads: the first part any; the second under the engine's lock.
// Surprise: no message costs a clock read. A request notes the number of the look before it, the tick; the times of the
//     looks are kept, thinned out with age, so an age is "at least", short by at most one interval of looking.
//
//   looks:  ──┬────┬────┬────────┬──▶ time        tick  3    4    5        6
//             3    4    5   ↑    6                a request posted here has tick 5: it is older than look 6
//
// Rejected: a time in every request (a clock read per message); a thread of our own (the library is a guest).
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace canele::comm {

class HangWatch {
 public:
  /// limit_ns: silence before a report; 0: never (ages are kept all the same).
  HangWatch(std::uint64_t limit_ns, std::uint64_t now_ns);

  // ---- any thread -----------------------------------------------------------------------------------------------
  std::uint32_t tick() const { return tick_.load(std::memory_order_relaxed); }
  std::uint64_t limit_ns() const { return limit_ns_; }
  /// Who sleeps for an engine sleeps no longer, so that somebody looks.
  std::uint64_t interval_ns() const { return interval_ns_; }
  /// A turn of polling found nothing. True once in many: look. (A turn lost to another thread does not matter.)
  bool idle_turn() {
    const std::uint64_t turns = idle_turns_.load(std::memory_order_relaxed) + 1;
    idle_turns_.store(turns, std::memory_order_relaxed);
    return turns % turns_per_look == 0;
  }
  /// True for one caller per interval.
  bool due(std::uint64_t now_ns);
  /// Bytes of a large message have moved.
  void moved() { moved_.fetch_add(1, std::memory_order_relaxed); }
  /// The last attempt to sleep had all drivers armed, and nothing to do.
  void armed(bool well) { armed_.store(well, std::memory_order_relaxed); }
  bool armed() const { return armed_.load(std::memory_order_relaxed); }
  std::uint64_t moves() const { return moved_.load(std::memory_order_relaxed); }

  // ---- under the lock -------------------------------------------------------------------------------------------
  /// What a look has seen.
  struct Sight {
    std::uint64_t now_ns = 0;
    std::uint64_t pulse = 0;          ///< changes with every packet and every completion
    std::uint64_t pending = 0;        ///< requests
    std::uint64_t sends = 0;          ///< those of them that send
    std::uint64_t waiting_since = 0;  ///< of the thread that is blocked for the longest time; 0: none
  };
  /// True: a report is due. Once per silence.
  bool see(const Sight& sight);
  /// The part of see() that a report on demand does, too.
  void note(std::uint64_t pulse, std::uint64_t now_ns);
  /// At least so old is a request posted at `tick`.
  std::uint64_t age_ns(std::uint32_t tick, std::uint64_t now_ns) const;
  std::uint64_t silent_ns(std::uint64_t now_ns) const { return now_ns - silent_since_; }
  /// At least so long nobody has polled in vain. Before note().
  std::uint64_t unpolled_ns(std::uint64_t now_ns) const;

 private:
  /// Requests posted from now on are younger than `now_ns`.
  void mark(std::uint64_t now_ns);
  void forget_one(std::uint64_t now_ns);
  static constexpr std::uint64_t turns_per_look = 1024;
  static constexpr std::size_t most_marks = 64;
  struct Mark {
    std::uint32_t tick;
    std::uint64_t ns;
  };

  const std::uint64_t limit_ns_, interval_ns_;
  std::atomic<std::uint32_t> tick_{0};
  alignas(64) std::atomic<std::uint64_t> idle_turns_{0};  // apart: spinning threads write it, every post reads the tick
  std::atomic<std::uint64_t> moved_{0};
  std::atomic<std::uint64_t> next_look_;
  std::atomic<bool> armed_{false};

  std::uint64_t pulse_ = 0, silent_since_, last_look_, sends_since_ = 0;
  bool reported_ = false;
  std::uint64_t polled_turns_ = 0, polled_at_;
  std::vector<Mark> marks_;  ///< ascending
};

/// When something that counts its events had the last one, as those who look have seen it.
struct LastEvent {
  std::uint64_t events = 0, seen_ns = 0;
  std::uint64_t polls = 0;  ///< of a driver, at that moment

  void look(std::uint64_t now_events, std::uint64_t now_polls, std::uint64_t now_ns) {
    if (events == now_events && seen_ns != 0) return;
    *this = {now_events, now_ns, now_polls};
  }
  std::uint64_t quiet_ns(std::uint64_t now_ns) const { return seen_ns == 0 ? 0 : now_ns - seen_ns; }
};

}  // namespace canele::comm
