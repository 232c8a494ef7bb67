// SPDX-License-Identifier: BSD-3-Clause
//
// What a rail measures of itself.
#include "comm/state/rail_pace.hpp"

#include <gtest/gtest.h>

namespace canele::comm {
namespace {

constexpr std::uint64_t slice = RailPace::report_every, ms = 1'000'000;

TEST(RailPace, IsTheDeclaredRateUntilDataHasArrived) {
  RailPace pace;
  EXPECT_EQ(pace.bytes_per_second(7e9, 0), 7e9);
  pace.hand(slice, 0);
  EXPECT_EQ(pace.bytes_per_second(7e9, ms), 7e9);
  EXPECT_TRUE(pace.report(slice, ms));
  EXPECT_NEAR(pace.bytes_per_second(7e9, ms), slice * 1e3, 1);
}

TEST(RailPace, ARoundTripBeforeTheFirstReportIsNoPartOfTheRate) {
  RailPace pace;
  pace.note_round_trip(4 * ms);
  pace.hand(slice, 0);
  EXPECT_TRUE(pace.report(slice, 5 * ms));
  EXPECT_NEAR(pace.bytes_per_second(0, 5 * ms), slice * 1e3, 1);
}

TEST(RailPace, ARailThatBringsNothingIsSlow) {
  RailPace pace;
  pace.hand(2 * slice, 0);
  EXPECT_TRUE(pace.report(slice, ms));
  const double before = pace.bytes_per_second(0, ms);
  EXPECT_EQ(pace.bytes_per_second(0, 2 * ms), before);
  EXPECT_NEAR(pace.bytes_per_second(0, 11 * ms), before / 10, before / 1000);
}

TEST(RailPace, TheWindowLastsTwoMilliseconds) {
  RailPace pace;
  pace.hand(slice, 0);
  EXPECT_TRUE(pace.has_room(0)) << "four reports before the rate is known";
  pace.hand(3 * slice, 0);
  EXPECT_FALSE(pace.has_room(0));
  EXPECT_TRUE(pace.report(4 * slice, ms)) << "a rate of 256 KiB a millisecond";
  pace.hand(7 * slice, ms);
  EXPECT_TRUE(pace.has_room(ms));
  pace.hand(slice, ms);
  EXPECT_FALSE(pace.has_room(ms));
}

TEST(RailPace, MoreThanWasSentIsNoReport) {
  RailPace pace;
  pace.hand(slice, 0);
  EXPECT_FALSE(pace.report(slice + 1, ms));
  EXPECT_TRUE(pace.report(slice, ms));
  EXPECT_TRUE(pace.report(slice / 2, 2 * ms)) << "an old report";
  EXPECT_EQ(pace.ahead(), 0u);
}

TEST(RailPace, TheShortestOfTheProbesIsTheLatency) {
  RailPace pace;
  EXPECT_EQ(pace.latency_ns(), 0u);
  pace.note_round_trip(300);
  pace.note_round_trip(100);
  pace.note_round_trip(200);
  EXPECT_EQ(pace.latency_ns(), 50u);
  EXPECT_TRUE(pace.wants_probe());
  pace.note_round_trip(200);
  EXPECT_FALSE(pace.wants_probe());
}

TEST(RailPace, OnlyQuickRailsCarrySmallPackets) {
  RailPace slow, quick;
  slow.note_round_trip(10 * ms);
  quick.note_round_trip(ms / 5);
  EXPECT_TRUE(quick.is_quick(quick.latency_ns()));
  EXPECT_FALSE(slow.is_quick(quick.latency_ns()));
  EXPECT_TRUE(slow.is_quick(slow.latency_ns())) << "there is no other rail";
}

TEST(RailPace, TheReceiverReportsNowAndThen) {
  RailPace pace;
  EXPECT_FALSE(pace.arrived(slice - 1));
  EXPECT_TRUE(pace.has_unreported());
  EXPECT_TRUE(pace.arrived(1));
  EXPECT_EQ(pace.take_report(), slice);
  EXPECT_FALSE(pace.has_unreported());
  EXPECT_FALSE(pace.arrived(slice - 1));
}

}  // namespace
}  // namespace canele::comm
