// SPDX-License-Identifier: BSD-3-Clause
//
// Clock synchronisation, its arithmetic: the reference's clock at any date, from round trips with it, with a bound of
// the error. Also dates at which all ranks begin.
//
// GlobalClock uses it with messages, and tests with clocks of their own. Any thread; no state outside of the objects. A
// bound is not an estimate. An answer was read between the sending and the return of its trip, whatever the network
// did. Of many trips, the quickest ways out and the quickest ways back thus bound the offset from both sides, each on
// its own. Heavy tails or ways of different length cannot make the bound wrong. They only make it wide.
//
//   reference       T            T - received <= offset <= T - sent      the middle of what all trips leave
//                 /   \                                                  is the estimate, half its width the bound
//   local     sent     received
//
// Between two estimates the offset is a line (interpolation). The line is continued after the second one
// (extrapolation), where the bounds grow by the horizon divided by the time between the two.
//
// F. Reynier: A study on progression of MPI communications using dedicated resources, Bordeaux 2022, section 4.2.2. The
// two bounds: K. Marzullo, S. Owicki: Maintaining the time in a distributed system, 1983.
#pragma once

#include <cstdint>
#include <span>

namespace canele::perf::progress {

/// Nanoseconds by a clock, since any moment. Differences fit into a double, dates do not.
using Date = std::int64_t;

/// One round trip: two dates of the local clock, and one of the reference's between them.
struct Trip {
  Date sent = 0, answered = 0, received = 0;
};

/// The assumed limits of clock errors. The bounds hold as long as the limits do.
struct Limits {
  double drift = 500e-6;  ///< largest drift between a clock and the reference
  double wander = 1e-8;   ///< largest change of the drift in a second
};

/// The reference's date is the local one + offset, at the local date `at`, with an error of at most `bound` ns.
struct Offset {
  Date at = 0, offset = 0;
  double bound = 0;
};

/// Returns the offset from one round of trips. Throws std::runtime_error if no offset can explain them all: a clock
/// drifts by more than the limits say.
Offset offset_of(std::span<const Trip> trips, const Limits& limits = {});

/// A local clock and the reference's, each as a function of the other.
class ClockLine {
 public:
  /// Uses one estimate: the clocks are assumed to run alike, and the bound grows by the limit of their drift.
  explicit ClockLine(const Offset& only, const Limits& limits = {});
  /// Uses two estimates, the earlier one first.
  ClockLine(const Offset& first, const Offset& second, const Limits& limits = {});

  Date global(Date local) const;
  Date local(Date global) const;
  /// Returns the bound of the error of global(local), ns.
  double bound(Date local) const;
  /// Returns how much faster the local clock runs than the reference: 100e-6 are 100 ppm.
  double drift() const { return 1 / (1 + slope_) - 1; }
  /// Returns the bound of the error of drift().
  double drift_bound() const;

 private:
  Offset first_, second_;
  Limits limits_;
  double slope_ = 0;  ///< of the offset
};

/// Dates at which all ranks begin: far enough ahead for the date to reach all ranks. If it came late to one, the next
/// dates lie twice as far ahead.
class Appointments {
 public:
  static constexpr double most = 1e9;  ///< ns ahead

  explicit Appointments(double margin_ns) : margin_(margin_ns) {}
  Date next(Date now) const { return now + static_cast<Date>(margin_); }
  /// Returns whether the last date counts.
  bool kept(bool anyone_late);
  double margin() const { return margin_; }
  std::uint64_t missed() const { return missed_; }

 private:
  double margin_;
  std::uint64_t missed_ = 0;
};

}  // namespace canele::perf::progress
