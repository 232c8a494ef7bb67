// SPDX-License-Identifier: BSD-3-Clause
//
// HangWatch. Time without a check does not count as silence: events of that time have not been processed yet.
#include "comm/observe/hang_watch.hpp"

#include <algorithm>

namespace canele::comm {
namespace {

constexpr std::uint64_t longest_interval_ns = 1'000'000'000, least_interval_ns = 1'000'000;

std::uint64_t interval_of(std::uint64_t limit_ns) {
  return limit_ns == 0 ? longest_interval_ns : std::clamp(limit_ns / 8, least_interval_ns, longest_interval_ns);
}

}  // namespace

HangWatch::HangWatch(std::uint64_t limit_ns, std::uint64_t now_ns)
    : limit_ns_(limit_ns),
      interval_ns_(interval_of(limit_ns)),
      next_check_(now_ns + interval_ns_),
      silent_since_(now_ns),
      last_check_(now_ns),
      polled_at_(now_ns) {}

bool HangWatch::due(std::uint64_t now_ns) {
  std::uint64_t next = next_check_.load(std::memory_order_relaxed);
  return now_ns >= next && next_check_.compare_exchange_strong(next, now_ns + interval_ns_, std::memory_order_relaxed);
}

bool HangWatch::see(const Sight& sight) {
  const std::uint64_t now = sight.now_ns;
  const bool unwatched = now - last_check_ > std::max(limit_ns_ / 2, 2 * interval_ns_);
  note(sight.pulse, now);
  if (unwatched) {
    silent_since_ = now;
    sends_since_ = 0;
  }
  last_check_ = polled_at_ = now;
  if (sight.sends == 0) {
    sends_since_ = 0;
  } else if (sends_since_ == 0) {
    sends_since_ = now;  // during silence no send ends: the oldest one is at least as old
  }
  const auto too_long = [&](std::uint64_t since) { return since != 0 && now - since >= limit_ns_; };
  if (limit_ns_ == 0 || reported_ || sight.pending == 0 || now - silent_since_ < limit_ns_) return false;
  reported_ = too_long(sends_since_) || too_long(sight.waiting_since);
  return reported_;
}

void HangWatch::note(std::uint64_t pulse, std::uint64_t now_ns) {
  if (pulse != pulse_) {
    pulse_ = pulse;
    silent_since_ = now_ns;
    sends_since_ = 0;
    reported_ = false;
  }
  const std::uint64_t turns = idle_turns_.load(std::memory_order_relaxed);
  if (turns != polled_turns_) {
    polled_turns_ = turns;
    polled_at_ = now_ns;
  }
  mark(now_ns);
}

/// Drops the check that is least needed: its gap is the smallest in proportion to its age.
void HangWatch::forget_one(std::uint64_t now_ns) {
  std::size_t least = 1;
  double least_share = 2;
  for (std::size_t i = 1; i + 1 < marks_.size(); ++i) {
    const double gap = static_cast<double>(marks_[i + 1].ns - marks_[i - 1].ns);
    const double share = gap / static_cast<double>(now_ns - marks_[i - 1].ns);
    if (share < least_share) least = i;
    least_share = std::min(least_share, share);
  }
  marks_.erase(marks_.begin() + static_cast<std::ptrdiff_t>(least));
}

void HangWatch::mark(std::uint64_t now_ns) {
  if (!marks_.empty() && now_ns - marks_.back().ns < interval_ns_ / 2) return;
  if (marks_.size() == most_marks) forget_one(now_ns);
  const std::uint32_t next = tick() + 1;
  marks_.push_back({next, now_ns});
  tick_.store(next, std::memory_order_relaxed);
}

std::uint64_t HangWatch::age_ns(std::uint32_t tick, std::uint64_t now_ns) const {
  const auto after = std::upper_bound(marks_.begin(), marks_.end(), tick,
                                      [](std::uint32_t t, const Mark& mark) { return t < mark.tick; });
  return after == marks_.end() || after->ns > now_ns ? 0 : now_ns - after->ns;
}

std::uint64_t HangWatch::unpolled_ns(std::uint64_t now_ns) const {
  return idle_turns_.load(std::memory_order_relaxed) != polled_turns_ ? 0 : now_ns - polled_at_;
}

}  // namespace canele::comm
