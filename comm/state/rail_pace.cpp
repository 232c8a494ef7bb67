// SPDX-License-Identifier: BSD-3-Clause
#include "comm/state/rail_pace.hpp"

namespace canele::comm {

bool RailPace::report(std::uint64_t total, std::uint64_t now_ns) {
  if (total > handed_) return false;
  if (total <= confirmed_) return true;  // reports by several rails may overtake each other
  const std::uint64_t bytes = total - confirmed_;
  confirmed_ = total;
  if (now_ns > busy_since_ns_) measured(static_cast<double>(bytes), static_cast<double>(now_ns - busy_since_ns_));
  busy_since_ns_ = std::max(busy_since_ns_, now_ns);
  return true;
}

/// Samples count by their duration. So the first bytes after a pause, which a network may let through at once, do not
/// count for more than they are.
void RailPace::measured(double bytes, double ns) {
  bytes_ += bytes;
  busy_ns_ += ns;
  if (busy_ns_ <= remembered_ns) return;
  bytes_ *= remembered_ns / busy_ns_;
  busy_ns_ = remembered_ns;
}

double RailPace::bytes_per_second(double declared, std::uint64_t now_ns) const {
  if (busy_ns_ == 0 || confirmed_ < least_known) return declared;
  const double rate = bytes_ * 1e9 / busy_ns_;
  if (handed_ == confirmed_ || now_ns <= busy_since_ns_) return rate;
  const std::uint64_t due = std::min(ahead(), report_every);
  const double most = static_cast<double>(due) * 1e9 / static_cast<double>(now_ns - busy_since_ns_);
  return std::min(rate, most);
}

}  // namespace canele::comm
