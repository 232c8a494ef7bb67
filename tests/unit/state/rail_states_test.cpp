// SPDX-License-Identifier: BSD-3-Clause
//
// The states of a rail: each allowed transition, each that the tables forbid, and what the states together promise. One
// thread.
#include "comm/state/rail_states.hpp"

#include <gtest/gtest.h>

#include <set>

#include "comm/state/peer.hpp"
#include "tests/unit/state/transition_table.hpp"

namespace canele::test {
namespace {

using comm::Connection;
using comm::Rail;
using comm::Transmit;

TEST(RailStates, AllowsEachConnectionOfTheTableAndNoOther) {
  const int allowed = try_all(comm::connection_transitions, [](Connection from, Connection to) {
    Rail rail;
    rail.connection = from;
    comm::transition(rail, to);
    return rail.connection;
  });
  EXPECT_EQ(allowed, 8);
}

TEST(RailStates, AllowsEachTransmitStateOfTheTableAndNoOther) {
  const int allowed = try_all(comm::transmit_transitions, [](Transmit from, Transmit to) {
    Rail rail;
    rail.transmit = from;
    comm::transition(rail, to);
    return rail.transmit;
  });
  EXPECT_EQ(allowed, 18);
}

TEST(RailStates, ReachesEveryStateFromTheInitialOne) {
  Rail rail;
  EXPECT_EQ(reached_states(comm::connection_transitions, rail.connection).size(),
            states_of(comm::connection_transitions).size());
  EXPECT_EQ(reached_states(comm::transmit_transitions, rail.transmit).size(),
            states_of(comm::transmit_transitions).size());
}

TEST(RailStates, EndsAConnectionForGood) {
  EXPECT_EQ(reached_states(comm::connection_transitions, Connection::failed).size(), 1u);
  EXPECT_EQ(reached_states(comm::connection_transitions, Connection::disconnected).size(), 1u);
}

TEST(RailStates, StagesThePacketOfAnIdleRailAndTheOneThatWasRefused) {
  for (const Transmit from : states_of(comm::transmit_transitions)) {
    const bool has_one = from == Transmit::idle || from == Transmit::refused;
    EXPECT_EQ(comm::transmit_transitions.allows(from, Transmit::staged), has_one) << static_cast<int>(from);
  }
}

TEST(RailStates, KnowsWhatTheDriverOwesAndWhatItsServerHas) {
  std::set<Transmit> full, in_flush;
  for (const Transmit state : states_of(comm::transmit_transitions)) {
    Rail rail;
    rail.transmit = state;
    if (rail.is_full()) full.insert(state);
    if (rail.in_flush()) in_flush.insert(state);
  }
  EXPECT_EQ(full, (std::set{Transmit::full, Transmit::blocked, Transmit::refused}));
  EXPECT_EQ(in_flush, (std::set{Transmit::connecting, Transmit::staged}));
}

}  // namespace
}  // namespace canele::test
