// SPDX-License-Identifier: BSD-3-Clause
//
// What a rank knows of its peers, and how it learns of their ends: three engines in one thread, over shared memory and
// over TCP.
#include <canele/job.h>

#include <cstdint>
#include <string>
#include <vector>

#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

class Peers : public testing::TestWithParam<const char*> {
 protected:
  struct Told {
    int rank, state;
    std::string why;
  };

  Peers()
      : job_({3, {comm::find_driver("self"), comm::find_driver(GetParam())}, "aggregate", {}}), s_(job_.open("test")) {}

  int state(int of, int rank) { return canele_peer_state(job_.handle(of), rank); }
  void exchange(int from, int to) {
    canele_request_t send{}, receive{};
    int out = 5, in = 0;
    ASSERT_EQ(canele_irecv(s_[static_cast<std::size_t>(to)], from, 1, CANELE_TAG_EXACT, &in, sizeof in, &receive), 0);
    ASSERT_EQ(canele_isend(s_[static_cast<std::size_t>(from)], to, 1, &out, sizeof out, &send), 0);
    ASSERT_TRUE(job_.finish(send) && job_.finish(receive));
  }
  void watch(int rank, canele_peer_fn callback) {
    ASSERT_EQ(canele_on_peer(job_.handle(rank), callback, this), CANELE_OK) << canele_error_detail();
  }
  static void note(canele_engine_t*, int rank, int state, const char* why, void* argument) {
    auto& self = *static_cast<Peers*>(argument);
    self.told_.push_back({rank, state, why});
    self.ended_first_ = comm::request_of(&self.from_it_).finalized();
    if (!self.cancels_) return;
    EXPECT_EQ(canele_cancel(&self.from_any_), CANELE_OK);
  }

  LocalJob job_;
  std::vector<canele_session_t*> s_;
  std::vector<Told> told_;
  canele_request_t from_it_{}, from_any_{};
  bool ended_first_ = false, cancels_ = false;
};

TEST_P(Peers, AStateIsWhatThisRankKnows) {
  EXPECT_EQ(state(1, 0), CANELE_PEER_UNKNOWN);
  exchange(0, 1);
  EXPECT_EQ(state(1, 0), CANELE_PEER_UP);
  EXPECT_EQ(state(0, 1), CANELE_PEER_UP);
  EXPECT_EQ(state(1, 2), CANELE_PEER_UNKNOWN);
  EXPECT_EQ(state(1, 3), CANELE_ERANK);
  EXPECT_EQ(state(1, -1), CANELE_ERANK);
  EXPECT_EQ(canele_peer_state(nullptr, 0), CANELE_EINVAL);
  EXPECT_EQ(canele_on_peer(nullptr, note, this), CANELE_EINVAL);
}

/// The requests that name the peer have ended by then, and a receive from any source can be cancelled.
TEST_P(Peers, TheEndOfAPeerIsToldOnce) {
  exchange(0, 1);
  exchange(2, 1);
  watch(1, note);
  int in[2] = {};
  ASSERT_EQ(canele_irecv(s_[1], 0, 7, CANELE_TAG_EXACT, &in[0], sizeof in[0], &from_it_), CANELE_OK);
  ASSERT_EQ(canele_irecv(s_[1], CANELE_ANY_SOURCE, 8, CANELE_TAG_EXACT, &in[1], sizeof in[1], &from_any_), CANELE_OK);
  cancels_ = true;
  job_.destroy(0);
  ASSERT_TRUE(job_.until([&] { return !told_.empty(); }));
  EXPECT_TRUE(ended_first_);
  EXPECT_EQ(told_[0].rank, 0);
  EXPECT_EQ(told_[0].state, CANELE_PEER_LOST);
  EXPECT_NE(told_[0].why, "");
  EXPECT_EQ(state(1, 0), CANELE_PEER_LOST);
  ASSERT_TRUE(job_.finish(from_any_));
  for (int i = 0; i < 1000; ++i) job_.step_all();
  EXPECT_EQ(told_.size(), 1u);
  cancels_ = false;
  job_.destroy(2);
  ASSERT_TRUE(job_.until([&] { return told_.size() == 2; }));
  EXPECT_EQ(told_[1].rank, 2);
}

TEST_P(Peers, AnEndBeforeTheRegistrationIsToldThen) {
  exchange(0, 1);
  job_.destroy(0);
  ASSERT_TRUE(job_.until([&] { return state(1, 0) == CANELE_PEER_LOST; }));
  watch(1, note);
  ASSERT_TRUE(job_.until([&] { return told_.size() == 1; }));
  watch(1, note);
  for (int i = 0; i < 100; ++i) job_.step_all();
  EXPECT_EQ(told_.size(), 1u) << "once for each peer";
}

TEST_P(Peers, WithoutACallbackNothingIsTold) {
  exchange(0, 1);
  watch(1, note);
  watch(1, nullptr);
  job_.destroy(0);
  ASSERT_TRUE(job_.until([&] { return state(1, 0) == CANELE_PEER_LOST; }));
  for (int i = 0; i < 100; ++i) job_.step_all();
  EXPECT_TRUE(told_.empty());
}

INSTANTIATE_TEST_SUITE_P(Drivers, Peers, testing::Values("shm", "tcp"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace canele::test
