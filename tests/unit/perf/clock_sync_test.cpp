// SPDX-License-Identifier: BSD-3-Clause
//
// Clock synchronisation on virtual clocks: errors are below their bounds, whatever offset, drift and noise are.
//
// One thread. Every run has a seed of its own, which is printed; CANELE_TEST_SEED repeats one. No seed may fail: bounds
// are no estimates.
#include "apps/perf/progress/clock_sync.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "apps/perf/statistics.hpp"

namespace canele::perf::progress {
namespace {

constexpr double us = 1e3, s = 1e9, ppm = 1e-6;

std::uint64_t fresh_seed() {
  const char* const asked = std::getenv("CANELE_TEST_SEED");
  const std::uint64_t seed = asked != nullptr ? std::strtoull(asked, nullptr, 10) : std::random_device{}();
  std::printf("seed: CANELE_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

using Random = std::mt19937_64;
double between(Random& random, double least, double most) {
  return std::uniform_real_distribution<double>(least, most)(random);
}

/// Shows offset + (1 + drift) t + the sum of wander, at the true time t (ns), which is the reference's.
struct VirtualClock {
  double drift = 0, wander = 0;
  Date offset = 0;
  Date at(double time) const { return offset + std::llround(time + drift * time + wander / 2 * time / s * time); }
};

/// Noise of both directions: a least time each, a usual addition, and heavy tails.
struct Noise {
  double out = 1.0 * us, back = 1.3 * us, mean = 0.3 * us, often = 0.02;
  double delay(Random& random, bool is_out) const {
    double time = (is_out ? out : back) + std::exponential_distribution<double>(1 / mean)(random);
    // Pareto of exponent 1.2: no variance, hardly a mean.
    if (between(random, 0, 1) < often) time += 5 * us * (std::pow(between(random, 1e-6, 1), -1 / 1.2) - 1);
    return time;
  }
};

/// Returns round trips that begin at the true time *now.
std::vector<Trip> trips_of(const VirtualClock& clock, const Noise& noise, Random& random, double* now, int count) {
  std::vector<Trip> trips;
  for (int i = 0; i < count; ++i) {
    Trip trip;
    trip.sent = clock.at(*now);
    *now += noise.delay(random, true);
    trip.answered = std::llround(*now);
    *now += noise.delay(random, false);
    trip.received = clock.at(*now);
    *now += between(random, 0, 0.2 * us);
    trips.push_back(trip);
  }
  return trips;
}

VirtualClock any_clock(Random& random) {
  VirtualClock clock;
  clock.offset = static_cast<Date>(between(random, -100, 100) * s);
  clock.drift = between(random, -100, 100) * ppm;
  return clock;
}

double error_at(const ClockLine& line, const VirtualClock& clock, double time) {
  return std::abs(static_cast<double>(line.global(clock.at(time)) - std::llround(time)));
}

TEST(ClockSync, TheErrorOfAnOffsetIsBelowItsBound) {
  const std::uint64_t seed = fresh_seed();
  Random random(seed);
  for (int round = 0; round < 200; ++round) {
    const VirtualClock clock = any_clock(random);
    double now = between(random, 0, 1000 * s);
    const std::vector<Trip> trips = trips_of(clock, {}, random, &now, 500);
    const Offset found = offset_of(trips);
    const double time = static_cast<double>(found.at - clock.offset) / (1 + clock.drift);
    const double error = std::abs(static_cast<double>(found.at + found.offset) - time);
    ASSERT_LE(error, found.bound + 1) << "seed " << seed << ", round " << round;
    // Half of the shortest round trip, the addition by the least noise of 500, and the drift meanwhile.
    ASSERT_LT(found.bound, 1.6 * us) << "seed " << seed << ", round " << round;
  }
}

TEST(ClockSync, WaysOfDifferentLengthCannotBeSeenButAreInTheBound) {
  Random random(1);
  Noise noise;
  noise.out = 1 * us, noise.back = 9 * us;
  const VirtualClock clock{0, 0, 5 * static_cast<Date>(s)};
  double now = 0;
  const Offset found = offset_of(trips_of(clock, noise, random, &now, 1000));
  const double error = std::abs(static_cast<double>(found.offset + clock.offset));
  EXPECT_NEAR(error, 4 * us, 0.2 * us) << "half the difference";
  EXPECT_LE(error, found.bound);
}

TEST(ClockSync, InterpolatesBelowItsBoundWhereTheOffsetAloneIsWrong) {
  const std::uint64_t seed = fresh_seed();
  Random random(seed);
  for (int round = 0; round < 100; ++round) {
    VirtualClock clock = any_clock(random);
    if (std::abs(clock.drift) < 10 * ppm) clock.drift = 10 * ppm;
    double now = 0;
    const Offset a = offset_of(trips_of(clock, {}, random, &now, 500));
    const double begin = now;
    now += 10 * s;
    const double end = now;
    const Offset b = offset_of(trips_of(clock, {}, random, &now, 500));
    const ClockLine line(a, b), once(a, Limits{0, 0});
    for (int i = 0; i <= 20; ++i) {
      const double time = begin + (end - begin) * i / 20;
      const Date local = clock.at(time);
      ASSERT_LE(error_at(line, clock, time), line.bound(local) + 1) << "seed " << seed << ", round " << round;
      ASSERT_LT(line.bound(local), 3 * us) << "seed " << seed;
      ASSERT_NEAR(static_cast<double>(line.local(line.global(local)) - local), 0, 1);
    }
    ASSERT_NEAR(line.drift(), clock.drift, line.drift_bound()) << "seed " << seed;
    // Without a model of drift: 10 ppm of ten seconds are 100 us.
    ASSERT_GT(error_at(once, clock, end), 90 * us) << "seed " << seed;
    ASSERT_GT(error_at(once, clock, end), 20 * line.bound(clock.at(end))) << "seed " << seed;
    // With the limit of drift, its bound is true, and of no use.
    ASSERT_LE(error_at(ClockLine(a), clock, end), ClockLine(a).bound(clock.at(end)));
  }
}

TEST(ClockSync, ExtrapolationGrowsWithTheHorizonAndShrinksWithTheTimeBetween) {
  const std::uint64_t seed = fresh_seed();
  Random random(seed);
  std::vector<double> near, far, short_base;
  for (int round = 0; round < 200; ++round) {
    const VirtualClock clock = any_clock(random);
    const auto ahead = [&](double base, double horizon, std::vector<double>* errors) {
      double now = 0;
      const Offset a = offset_of(trips_of(clock, {}, random, &now, 300));
      now += base;
      const Offset b = offset_of(trips_of(clock, {}, random, &now, 300));
      const ClockLine line(a, b, {500e-6, 0});
      const double time = now + horizon;
      ASSERT_LE(error_at(line, clock, time), line.bound(clock.at(time)) + 1) << "seed " << seed;
      errors->push_back(line.bound(clock.at(time)));
    };
    ahead(1 * s, 1 * s, &near);
    ahead(1 * s, 20 * s, &far);
    ahead(0.05 * s, 20 * s, &short_base);
  }
  EXPECT_GT(quantile(far, 0.5), 8 * quantile(near, 0.5));
  EXPECT_GT(quantile(short_base, 0.5), 8 * quantile(far, 0.5));
}

TEST(ClockSync, AWanderingDriftIsInTheBound) {
  const std::uint64_t seed = fresh_seed();
  Random random(seed);
  const double wander = 1e-6;  // a hundred times that of a crystal
  double worst = 0;
  for (int round = 0; round < 100; ++round) {
    VirtualClock clock = any_clock(random);
    clock.wander = between(random, -0.99, 0.99) * wander;
    const Limits limits{500e-6, wander};
    double now = 0;
    const Offset a = offset_of(trips_of(clock, {}, random, &now, 200), limits);
    now += 10 * s;
    const Offset b = offset_of(trips_of(clock, {}, random, &now, 200), limits);
    const ClockLine line(a, b, limits), blind(a, b, {500e-6, 0});
    for (const double time : {2 * s, 5 * s, 8 * s, 15 * s}) {
      ASSERT_LE(error_at(line, clock, time), line.bound(clock.at(time)) + 1) << "seed " << seed;
      worst = std::max(worst, error_at(blind, clock, time) / blind.bound(clock.at(time)));
    }
  }
  EXPECT_GT(worst, 2) << "without that term the bound would be wrong";
}

TEST(ClockSync, AClockThatRunsTooWrongOrBackIsToldOf) {
  Random random(1);
  double now = 0;
  VirtualClock clock{2000 * ppm, 0, 0};
  std::vector<Trip> trips = trips_of(clock, {}, random, &now, 3000);
  EXPECT_THROW(offset_of(trips, {100 * ppm, 0}), std::runtime_error);
  clock.drift = 0;
  trips = trips_of(clock, {}, random, &now, 10);
  trips[5].received = trips[5].sent - 1;
  EXPECT_THROW(offset_of(trips), std::runtime_error);
  EXPECT_THROW(ClockLine({10, 0, 1}, {10, 0, 1}), std::runtime_error);
}

/// Returns when each of the ranks leaves a barrier (dissemination) that they enter at these times.
std::vector<double> barrier(std::vector<double> times, const Noise& noise, Random& random) {
  const std::size_t n = times.size();
  for (std::size_t away = 1; away < n; away *= 2) {
    const std::vector<double> before = times;
    for (std::size_t rank = 0; rank < n; ++rank) {
      times[rank] = std::max(before[rank], before[(rank + n - away) % n] + noise.delay(random, true));
    }
  }
  return times;
}

double spread(const std::vector<double>& times) {
  const auto [first, last] = std::minmax_element(times.begin(), times.end());
  return *last - *first;
}

/// Ranks with clocks of their own that begin at agreed times.
struct Job {
  std::vector<VirtualClock> clocks;
  std::vector<ClockLine> lines;
  double now = 0;

  Job(int ranks, const Noise& noise, Random& random) {
    std::vector<std::vector<Offset>> offsets(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) clocks.push_back(rank == 0 ? VirtualClock{} : any_clock(random));
    for (int pass = 0; pass < 2; ++pass, now += 1 * s) {
      for (std::size_t rank = 1; rank < clocks.size(); ++rank) {
        offsets[rank].push_back(offset_of(trips_of(clocks[rank], noise, random, &now, 500)));
      }
    }
    for (std::size_t rank = 0; rank < clocks.size(); ++rank) {
      lines.push_back(rank == 0 ? ClockLine(Offset{}) : ClockLine(offsets[rank][0], offsets[rank][1]));
    }
  }

  /// Returns the true times at which the ranks begin; *late: the agreement has reached a rank too late.
  std::vector<double> begin_at(Date date, const Noise& noise, Random& random, bool* late) {
    std::vector<double> times;
    for (std::size_t rank = 0; rank < clocks.size(); ++rank) {
      const double heard = rank == 0 ? now : now + noise.delay(random, true);
      const VirtualClock& clock = clocks[rank];
      const double wanted = static_cast<double>(lines[rank].local(date) - clock.offset) / (1 + clock.drift);
      if (heard > wanted) *late = true;
      times.push_back(std::max(heard, wanted));
    }
    now = *std::max_element(times.begin(), times.end());
    return times;
  }
};

TEST(SynchronisedStart, RanksBeginCloserTogetherThanTheyLeaveABarrier) {
  const std::uint64_t seed = fresh_seed();
  Random random(seed);
  const Noise noise;
  Job job(32, noise, random);
  Appointments appointments(200 * us);
  std::vector<double> by_barrier, by_date;
  while (by_date.size() < 200) {
    by_barrier.push_back(spread(barrier(std::vector<double>(job.clocks.size(), job.now), noise, random)));
    bool late = false;
    const double asked = job.now;
    const std::vector<double> times = job.begin_at(appointments.next(std::llround(job.now)), noise, random, &late);
    if (!appointments.kept(late)) continue;
    by_date.push_back(spread(times));
    double bound = 0;
    for (std::size_t rank = 0; rank < times.size(); ++rank) {
      bound = std::max(bound, job.lines[rank].bound(job.clocks[rank].at(times[rank])));
    }
    ASSERT_LE(by_date.back(), 2 * bound + 4) << "seed " << seed;
    ASSERT_GE(times[0], asked);
  }
  RecordProperty("barrier_ns", static_cast<int>(quantile(by_barrier, 0.5)));
  RecordProperty("agreed_date_ns", static_cast<int>(quantile(by_date, 0.5)));
  EXPECT_LT(quantile(by_date, 0.5), quantile(by_barrier, 0.5) / 2) << "seed " << seed;
  EXPECT_LT(quantile(by_date, 0.9), quantile(by_barrier, 0.5)) << "seed " << seed;
}

TEST(SynchronisedStart, ADateThatHasPassedIsSeenAndTheNextOneLiesFartherAhead) {
  Random random(7);
  Noise slow;
  slow.out = 50 * us;
  Job job(8, slow, random);
  Appointments appointments(10 * us);  // the agreement takes five times as long
  std::vector<double> times;
  bool kept = false;
  while (!kept) {
    bool late = false;
    times = job.begin_at(appointments.next(std::llround(job.now)), slow, random, &late);
    kept = appointments.kept(late);
    ASSERT_LT(appointments.missed(), 20U);
  }
  EXPECT_GE(appointments.missed(), 3U) << "10, 20 and 40 us are too short";
  EXPECT_GE(appointments.margin(), 80 * us);
  EXPECT_LT(spread(times), 60 * us);
  const double before = appointments.margin();
  EXPECT_TRUE(appointments.kept(false));
  EXPECT_EQ(appointments.margin(), before);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(appointments.kept(true));
  EXPECT_EQ(appointments.margin(), Appointments::most);
}

}  // namespace
}  // namespace canele::perf::progress
