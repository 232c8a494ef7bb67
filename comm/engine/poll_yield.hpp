// SPDX-License-Identifier: BSD-3-Clause
//
// Polls: decides when a call that does not block, and has found nothing, yields the core to other threads.
//
// Used by the API calls that poll once: test, queue_poll, progress, probes. The counters of empty polls are per thread.
// What threads learn about the cores that they share belongs to the engine (WaiterHeuristics).
//
// Only a yield tells whether another thread wants the core: if so, the yield takes long. A thread therefore yields only
// where there is a reason to. It yields less and less often while no other thread takes the core. After a run of such
// yields it stops.
//
//   the thread that made the engine
//     │
//     ▼
//   calm ──a gap in a run of polls──▶ asks: yields after 64, 128, … polls ──all came back at once──▶ calm
//                                       ▲ │
//        a thread that did not make the │ │ a yield took long: the engine's threads are contended
//        engine starts here             │ ▼
//                                     gives way: yields after 1, or up to 16 polls; so does every thread on an
//                                     oversubscribed host
#pragma once

#include <cstddef>
#include <cstdint>

#include "ltask/platform.hpp"

namespace canele::comm {

class WaiterHeuristics;

/// State of the calling thread, for all engines that it polls. It is reset with each engine that the thread makes, so
/// that a simulated run depends on nothing outside of that run.
struct PollerState {
  enum class Mood : std::uint8_t { fresh, calm, asks };

  std::uint32_t left = at_first;    ///< polls before the thread considers a yield
  std::uint32_t stride = at_first;  ///< polls from one such decision to the next
  Mood mood = Mood::fresh;
  bool tight = false;          ///< the last polls followed each other closely
  std::uint64_t last_ns = 0;   ///< time of the last decision
  std::size_t next_place = 0;  ///< index at which its next scan of a list of requests begins

  static constexpr std::uint32_t at_first = 64;
};
extern constinit thread_local PollerState poller_state __attribute__((tls_model("initial-exec")));

/// Decides which thread runs next after polls that found nothing. One object in each engine.
class Polls {
 public:
  /// oversubscribed: this host has more ranks than processing units.
  Polls(Platform& platform, WaiterHeuristics& heuristics, bool oversubscribed) noexcept
      : platform_(platform), heuristics_(heuristics), oversubscribed_(oversubscribed), maker_(platform.this_thread()) {
    poller_state = {};
  }

  /// Called when a poll of the calling thread found no work for any thread.
  void found_nothing() noexcept {
    if (--poller_state.left == 0) [[unlikely]]
      consider();
  }

 private:
  [[gnu::cold, gnu::noinline]] void consider() noexcept;
  bool has_reason_to_ask(PollerState& mine, std::uint64_t now) const noexcept;

  Platform& platform_;
  WaiterHeuristics& heuristics_;
  const bool oversubscribed_;
  const void* const maker_;  ///< the thread that made the engine: often the only one
};

}  // namespace canele::comm
