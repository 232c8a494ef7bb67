// SPDX-License-Identifier: BSD-3-Clause
//
// Waiting with a time limit: until a condition holds, or for a call that may hang, on a thread of its own.
//
// Used by pmix.cpp and the other bootstraps. Any thread. A call that never returns keeps its thread for the rest of the
// process, because a thread cannot be stopped from outside.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>

#include "ltask/platform.hpp"

namespace canele::comm {

/// A condition that other threads wait for. Call change() after each change of the condition.
class Signal {
 public:
  explicit Signal(Platform& platform) : platform_(platform) {}

  void change() {
    // Release: pairs with the acquire load in wait().
    word_.fetch_add(1, std::memory_order_release);
    platform_.unpark(word_);
  }

  /// Blocks until the condition holds. Returns false if the time `until` came first (~0: no limit).
  template <typename Condition>
  bool wait(std::uint64_t until, Condition&& holds) {
    while (true) {
      // Before the test: a later change ends the park.
      const std::uint32_t seen = word_.load(std::memory_order_acquire);
      if (holds()) return true;
      const std::uint64_t now = platform_.now_ns();
      if (now >= until) return false;
      platform_.park(word_, seen, until == forever ? forever : until - now);
    }
  }

  static constexpr std::uint64_t forever = std::numeric_limits<std::uint64_t>::max();

 private:
  Platform& platform_;
  std::atomic<std::uint32_t> word_{0};
};

/// Returns now + length, without overflow.
inline std::uint64_t deadline_after(Platform& platform, std::uint64_t length_ns) {
  const std::uint64_t now = platform.now_ns();
  return length_ns > Signal::forever - now ? Signal::forever : now + length_ns;
}

enum class Bounded : std::uint8_t {
  ended,
  late,      ///< it still runs: what it uses must stay alive (capture shared pointers, no references)
  no_thread  ///< it has not begun: the system has no thread for it
};

inline constexpr const char* no_thread_text =
    "the system starts no more threads (ulimit -u, the container's limit on processes, or memory)";

/// Runs `body` on a new thread, and waits at most timeout_ns for its end.
Bounded run_bounded(Platform& platform, const char* name, std::uint64_t timeout_ns, std::function<void()> body);

/// Runs `body` like run_bounded(), if it must be done in any case: without a thread it runs here, without a limit.
Bounded run_bounded_or_here(Platform& platform, const char* name, std::uint64_t timeout_ns,
                            const std::function<void()>& body);

}  // namespace canele::comm
