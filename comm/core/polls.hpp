// SPDX-License-Identifier: BSD-3-Clause
//
// Polls: when a call that does not block, and has found nothing, gives the core to other threads.
//
// Who: the calls of the API that look once: test, queue_poll, progress, probes.
// Threads: the looks are each thread's own; what threads find out about the cores they share is the engine's (Crowd).
// Surprise: only a yield tells whether another thread wants the core: then it lasts. So a thread yields where there is
//     a reason to ask, more and more seldom while nobody takes the core, and no longer after a row of such yields.
//
//   calm ──a hole in a row of looks──▶ asks: yields after 64, 128, … looks ──all came back at once──▶ calm
//     ▲                                  ▲ │
//     │            a thread that did not │ │ a yield lasted: the engine's threads are contended
//   the thread that made the engine      │ ▼
//                  make the engine     gives way: yields after 1, or up to 16 looks; so does everyone on a crowded host
#pragma once

#include <cstddef>
#include <cstdint>

#include "ltask/platform.hpp"

namespace canele::comm {

class Crowd;

/// Of the calling thread, whatever engines it polls. Made anew with each engine that it makes: what happens in a
/// simulated world depends on nothing else than that world.
struct EmptyLooks {
  enum class Mood : std::uint8_t { fresh, calm, asks };

  std::uint32_t left = at_first;    ///< looks before it thinks of others
  std::uint32_t stride = at_first;  ///< from one thought to the next
  Mood mood = Mood::fresh;
  bool tight = false;          ///< the last looks followed each other closely
  std::uint64_t last_ns = 0;   ///< the last thought
  std::size_t next_place = 0;  ///< where its next look at a list of requests begins

  static constexpr std::uint32_t at_first = 64;
};
extern constinit thread_local EmptyLooks empty_looks __attribute__((tls_model("initial-exec")));

/// Whose turn it is after looks that found nothing. One in each engine.
class Polls {
 public:
  /// crowded: more ranks on this host than processing units.
  Polls(Platform& platform, Crowd& crowd, bool crowded) noexcept
      : platform_(platform), crowd_(crowd), crowded_(crowded), maker_(platform.this_thread()) {
    empty_looks = {};
  }

  /// A look of the calling thread found nothing for anybody.
  void found_nothing() noexcept {
    if (--empty_looks.left == 0) [[unlikely]]
      consider();
  }

 private:
  [[gnu::cold, gnu::noinline]] void consider() noexcept;
  bool has_reason_to_ask(EmptyLooks& mine, std::uint64_t now) const noexcept;

  Platform& platform_;
  Crowd& crowd_;
  const bool crowded_;
  const void* const maker_;  ///< the thread that made the engine: often the only one
};

}  // namespace canele::comm
