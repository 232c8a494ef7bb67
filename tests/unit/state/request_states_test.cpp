// SPDX-License-Identifier: BSD-3-Clause
//
// The states of a request: each allowed transition of a send and of a receive, and each that the tables forbid. One
// thread.
#include "comm/state/request_states.hpp"

#include <gtest/gtest.h>

#include <set>

#include "comm/state/request.hpp"
#include "tests/unit/state/transition_table.hpp"

namespace canele::test {
namespace {

using comm::Request;
using Stage = comm::RequestStage;

Stage change(Request::Kind kind, Stage from, Stage to) {
  Request request{};
  request.kind = kind;
  request.stage = from;
  comm::transition(request, to);
  return request.stage;
}

TEST(RequestStates, AllowsEachTransitionOfASendAndNoOther) {
  const auto of_send = [](Stage from, Stage to) { return change(Request::Kind::send, from, to); };
  EXPECT_EQ(try_all(comm::send_transitions, of_send), 22);
}

TEST(RequestStates, AllowsEachTransitionOfAReceiveAndNoOther) {
  const auto of_receive = [](Stage from, Stage to) { return change(Request::Kind::receive, from, to); };
  EXPECT_EQ(try_all(comm::receive_transitions, of_receive), 11);
}

TEST(RequestStates, ReachesTheStatesOfItsDirection) {
  EXPECT_EQ(reached_states(comm::send_transitions, Stage::idle),
            (std::set{Stage::idle, Stage::begun, Stage::posted, Stage::blocked, Stage::advertising, Stage::advertised,
                      Stage::moving, Stage::draining, Stage::listed}));
  EXPECT_EQ(reached_states(comm::receive_transitions, Stage::idle),
            (std::set{Stage::idle, Stage::posted, Stage::matched_unbound, Stage::moving, Stage::listed}));
}

TEST(RequestStates, EndsFromEveryStateThatItReaches) {
  for (const Stage from : reached_states(comm::send_transitions, Stage::idle))
    EXPECT_EQ(reached_states(comm::send_transitions, from).count(Stage::idle), 1u) << static_cast<int>(from);
  for (const Stage from : reached_states(comm::receive_transitions, Stage::idle))
    EXPECT_EQ(reached_states(comm::receive_transitions, from).count(Stage::idle), 1u) << static_cast<int>(from);
}

TEST(RequestStates, LetsThePeerReferToASendThatItHasHeardOf) {
  std::set<Stage> announced, blocked;
  for (const Stage stage : states_of(comm::send_transitions)) {
    Request request{};
    request.kind = Request::Kind::send;
    request.stage = stage;
    if (request.announced()) announced.insert(stage);
    if (request.is_blocked()) blocked.insert(stage);
  }
  // A send that was never advertised is `blocked`, too, but it has no name yet.
  EXPECT_EQ(announced, (std::set{Stage::blocked, Stage::advertised, Stage::moving, Stage::draining}));
  EXPECT_EQ(blocked, (std::set{Stage::blocked, Stage::advertising, Stage::advertised}));
}

}  // namespace
}  // namespace canele::test
