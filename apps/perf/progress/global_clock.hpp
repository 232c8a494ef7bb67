// SPDX-License-Identifier: BSD-3-Clause
//
// Global clock: rank 0's clock on every rank, by messages, and starts at an agreed date.
//
// All ranks call it in equal order. Threads: the main thread of each rank. On one host all ranks read one cycle
// counter, so the truth is known. A clock may thus be made wrong on purpose, and the error of its estimate be measured.
#pragma once

#include <vector>

#include "clock.hpp"
#include "clock_sync.hpp"
#include "link.hpp"

namespace canele::perf::progress {

/// What a clock shows, as a function of the cycle counter.
struct ClockLaw {
  std::uint64_t first = 0;  ///< ticks
  Date begin = 0;           ///< shown at `first`
  double ns_per_tick = 1;

  Date at(std::uint64_t ticks) const {
    return begin + static_cast<Date>(ns_per_tick * static_cast<double>(ticks - first));
  }
  /// Returns the counter at the time when the clock shows that date, which must not be before `begin`.
  std::uint64_t ticks_at(Date date) const {
    return first + static_cast<std::uint64_t>(static_cast<double>(date - begin) / ns_per_tick);
  }
};

/// This rank's clock. It shows `begin` when it is made, and runs fast by `drift` (100e-6: 100 ppm).
class LocalClock {
 public:
  explicit LocalClock(const Clock& clock, Date begin = 0, double drift = 0)
      : clock_(clock), law_{clock.now(), begin, (1 + drift) * us_in_ns * clock.us(1)} {}
  Date now() const { return law_.at(clock_.now()); }
  const ClockLaw& law() const { return law_; }

 private:
  static constexpr double us_in_ns = 1e3;
  const Clock& clock_;
  ClockLaw law_;
};

class GlobalClock {
 public:
  GlobalClock(Link& link, const LocalClock& local, double margin_ns)
      : link_(link), local_(local), appointments_(margin_ns) {}

  /// Makes so many round trips of each rank with rank 0, one rank after the other. All ranks call it.
  Offset synchronise(int trips);
  /// Makes all ranks begin at one date, by `line`. Returns the local date at which this rank began; see in_time(). All
  /// ranks call it.
  Date start(const ClockLine& line);
  /// Returns false if the date came late to a rank, so that the start does not count. The next date then lies farther
  /// ahead. All ranks call it, after the work begun together.
  bool in_time();

  const Appointments& appointments() const { return appointments_; }

 private:
  Offset ask(int trips);
  void answer(int rank, int trips);

  Link& link_;
  const LocalClock& local_;
  Appointments appointments_;
  bool late_ = false;
};

}  // namespace canele::perf::progress
