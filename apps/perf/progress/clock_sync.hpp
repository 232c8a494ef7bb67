// SPDX-License-Identifier: BSD-3-Clause
//
// Clock synchronisation, the arithmetic of it: from round trips with a reference to its clock, at any date, with a
// bound of the error; and dates at which all begin.
//
// Who: GlobalClock, by messages; tests, with clocks of their own. Threads: any; no state but what is in the objects.
// Surprise: a bound is no estimate. An answer was read between the sending and the return of its trip, whatever the
//     network did; so of many trips the quickest ways out and the quickest ways back bound the offset from both sides,
//     each on its own, and heavy tails or ways of different length cannot make the bound wrong. They make it wide.
//
//   reference       T            T - received <= offset <= T - sent      the middle of what all trips leave
//                 /   \                                                  is the estimate, half its width the bound
//   local     sent     received
//
//   between two estimates the offset is a line (interpolation); it is continued after the second one (extrapolation),
//   where the bounds grow by the horizon over the time between the two
//
// F. Reynier: A study on progression of MPI communications using dedicated resources, Bordeaux 2022, section 4.2.2; the
// two bounds: K. Marzullo, S. Owicki: Maintaining the time in a distributed system, 1983.
#pragma once

#include <cstdint>
#include <span>

namespace canele::perf::progress {

/// Nanoseconds by some clock, since any moment. Differences fit into a double, dates do not.
using Date = std::int64_t;

/// One round trip: two dates of the local clock, and one of the reference's between them.
struct Trip {
  Date sent = 0, answered = 0, received = 0;
};

/// What clocks do at worst, as far as it is known. The bounds hold as long as that is true.
struct Limits {
  double drift = 500e-6;  ///< a clock and the reference drift apart by, at most
  double wander = 1e-8;   ///< in a second the drift changes by, at most
};

/// The reference's date is the local one + offset, at the local date `at`, wrong by `bound` ns at most.
struct Offset {
  Date at = 0, offset = 0;
  double bound = 0;
};

/// Of one round of trips. Throws std::runtime_error if no offset can explain them all: a clock drifts by more than the
/// limits say.
Offset offset_of(std::span<const Trip> trips, const Limits& limits = {});

/// A local clock and the reference's, each as a function of the other.
class ClockLine {
 public:
  /// By one estimate: the clocks are taken to run alike, and the bound grows by the limit of their drift.
  explicit ClockLine(const Offset& only, const Limits& limits = {});
  /// By two, the earlier one first.
  ClockLine(const Offset& first, const Offset& second, const Limits& limits = {});

  Date global(Date local) const;
  Date local(Date global) const;
  /// Of the error of global(local), ns.
  double bound(Date local) const;
  /// So much faster runs the local clock than the reference: 100e-6 are 100 ppm.
  double drift() const { return 1 / (1 + slope_) - 1; }
  /// Of the error of drift().
  double drift_bound() const;

 private:
  Offset first_, second_;
  Limits limits_;
  double slope_ = 0;  ///< of the offset
};

/// Dates at which all begin: far enough ahead for the word to reach everybody. If it came late to one, the next ones
/// lie twice as far ahead.
class Appointments {
 public:
  static constexpr double most = 1e9;  ///< ns ahead

  explicit Appointments(double margin_ns) : margin_(margin_ns) {}
  Date next(Date now) const { return now + static_cast<Date>(margin_); }
  /// Whether the last one counts.
  bool kept(bool anyone_late);
  double margin() const { return margin_; }
  std::uint64_t missed() const { return missed_; }

 private:
  double margin_;
  std::uint64_t missed_ = 0;
};

}  // namespace canele::perf::progress
