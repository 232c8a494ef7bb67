// SPDX-License-Identifier: BSD-3-Clause
//
// The decision of a thread whose polls found nothing. See the picture in poll_yield.hpp.
#include "comm/engine/poll_yield.hpp"

#include <algorithm>

#include "comm/engine/waiters.hpp"

namespace canele::comm {

constinit thread_local PollerState poller_state{};

namespace {

constexpr std::uint32_t longest_stride = 8192;  ///< of a thread in mood `asks`: about a millisecond.
constexpr std::uint32_t short_stride = 16;      ///< of a thread that gives way.
constexpr std::uint64_t lost_ns = 900;          ///< a yield that no other thread uses takes less.
constexpr std::uint64_t hole_ns = 1'000'000;    ///< another thread had the core for its turn.
constexpr std::uint64_t tight_ns = 250'000;     ///< nothing but polls fits between two decisions.

}  // namespace

/// Returns whether the thread should yield to find out if others want the core. A program that computes between its
/// polls has gaps, too. So a gap counts only if it ends a run of close polls.
bool Polls::has_reason_to_ask(PollerState& mine, std::uint64_t now) const noexcept {
  const std::uint64_t since = now - mine.last_ns;
  const bool hole = mine.tight && since > hole_ns;
  mine.tight = since < tight_ns;
  if (mine.mood == PollerState::Mood::asks) return true;
  const bool beside_others = mine.mood == PollerState::Mood::fresh && platform_.this_thread() != maker_;
  mine.mood = hole || beside_others ? PollerState::Mood::asks : PollerState::Mood::calm;
  return mine.mood == PollerState::Mood::asks;
}

void Polls::consider() noexcept {
  PollerState& mine = poller_state;
  const bool gives_way = oversubscribed_ || heuristics_.contended();
  const std::uint64_t now = platform_.now_ns();
  if (!has_reason_to_ask(mine, now) && !gives_way) {
    mine.last_ns = now;
    mine.left = mine.stride = PollerState::at_first;
    return;
  }
  platform_.yield();
  mine.last_ns = platform_.now_ns();
  const bool lost = mine.last_ns - now > lost_ns;
  heuristics_.yielded(lost);
  if (lost) {
    mine.mood = PollerState::Mood::asks;
    // A compute thread keeps the core for a long turn. The next message may be near, and should not wait for another
    // such turn.
    mine.stride = mine.last_ns - now > hole_ns ? PollerState::at_first : 1;
  } else if (oversubscribed_ || heuristics_.contended()) {
    mine.stride = std::min(2 * mine.stride, short_stride);
  } else if (mine.stride < longest_stride) {
    mine.stride = std::max(2 * mine.stride, PollerState::at_first);
  } else {
    mine.mood = PollerState::Mood::calm;
    mine.stride = PollerState::at_first;
  }
  mine.left = mine.stride;
}

}  // namespace canele::comm
