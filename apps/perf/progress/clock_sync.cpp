// SPDX-License-Identifier: BSD-3-Clause
//
// The arithmetic of clock synchronisation.
//
// Dates are subtracted as integers before anything is computed with them, because a double has no nanoseconds left
// after a hundred days.
#include "clock_sync.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace canele::perf::progress {
namespace {

constexpr double reading = 1;  // ns: a clock is read as a whole number
constexpr double second_ns = 1e9, millionth = 1e-6;

double apart(Date a, Date b) { return static_cast<double>(a - b); }

}  // namespace

Offset offset_of(std::span<const Trip> trips, const Limits& limits) {
  assert(!trips.empty());
  // The estimate holds for the middle of the quickest trip. The longer ago another trip was, the less it constrains it.
  const Trip& quickest = *std::min_element(trips.begin(), trips.end(), [](const Trip& a, const Trip& b) {
    return a.received - a.sent < b.received - b.sent;
  });
  const Date at = quickest.sent + (quickest.received - quickest.sent) / 2;
  const Date base = trips.front().answered - trips.front().sent;
  double least = std::numeric_limits<double>::lowest(), most = std::numeric_limits<double>::max();
  for (const Trip& trip : trips) {
    if (trip.received < trip.sent) throw std::runtime_error("a round trip ended before it began: the clock goes back");
    // By then the offset may have changed.
    const double moved =
        reading + limits.drift * std::max(std::abs(apart(trip.sent, at)), std::abs(apart(trip.received, at)));
    least = std::max(least, apart(trip.answered - trip.received, base) - moved);
    most = std::min(most, apart(trip.answered - trip.sent, base) + moved);
  }
  if (least > most) {
    throw std::runtime_error("no offset explains all round trips: the clocks drift apart by more than " +
                             std::to_string(std::lround(limits.drift / millionth)) + " ppm, or one has jumped");
  }
  return {at, base + std::llround((least + most) / 2), (most - least) / 2 + reading};
}

ClockLine::ClockLine(const Offset& only, const Limits& limits) : first_(only), second_(only), limits_(limits) {}

ClockLine::ClockLine(const Offset& first, const Offset& second, const Limits& limits)
    : first_(first), second_(second), limits_(limits) {
  if (second.at <= first.at) throw std::runtime_error("a line through two offsets needs two dates, the earlier first");
  slope_ = apart(second.offset, first.offset) / apart(second.at, first.at);
}

Date ClockLine::global(Date local) const {
  return local + first_.offset + std::llround(slope_ * apart(local, first_.at));
}

Date ClockLine::local(Date global) const {
  return first_.at + std::llround(apart(global - first_.offset, first_.at) / (1 + slope_));
}

double ClockLine::bound(Date local) const {
  if (first_.at == second_.at) return first_.bound + limits_.drift * std::abs(apart(local, first_.at)) + reading;
  const double since = apart(local, first_.at), until = apart(local, second_.at), span = since - until;
  const double of_ends = std::abs(until / span) * first_.bound + std::abs(since / span) * second_.bound;
  // A curve of that curvature through both ends deviates from the line by at most this much.
  return of_ends + limits_.wander / 2 * std::abs(since * until) / second_ns + reading;
}

double ClockLine::drift_bound() const {
  if (first_.at == second_.at) return limits_.drift;
  const double span = apart(second_.at, first_.at);
  return (first_.bound + second_.bound) / span + limits_.wander / 2 * span / second_ns;
}

bool Appointments::kept(bool anyone_late) {
  if (!anyone_late) return true;
  ++missed_;
  margin_ = std::min(2 * margin_, most);
  return false;
}

}  // namespace canele::perf::progress
