// SPDX-License-Identifier: BSD-3-Clause
//
// Receives that are posted while many messages wait: they are looked up a little later, without any visible difference.
//
// Other threads only create the engines; the last test has one more. The table must be large before any receive is put
// off, so each test sends 9,000 messages first.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

class ReceivePrefetch : public testing::Test {
 protected:
  static constexpr std::size_t count = 9000, tags = 8800;  // the first 200 tags come twice

  void SetUp() override {
    std::iota(out_.begin(), out_.end(), 0u);
    for (std::size_t i = 0; i < count; ++i) {
      canele_isend(sessions_[0], 1, i % tags, &out_[i], sizeof out_[i], &sends_[i]);
    }
    ASSERT_TRUE(job_.until([&] { return unexpected() == count; }));
  }
  std::uint64_t unexpected() { return engine_.counters.read(comm::Counter::unexpected_now); }

  void post(std::size_t i, int source, std::uint64_t tag, std::uint64_t mask = CANELE_TAG_EXACT) {
    in_[i] = nothing;
    ASSERT_EQ(canele_irecv(sessions_[1], source, tag, mask, &in_[i], sizeof in_[i], &receives_[i]), CANELE_OK);
  }
  /// Posts a receive for a message that has arrived; the message is not looked up yet.
  void post_unseen(std::size_t i, std::uint64_t tag) {
    post(i, 0, tag);
    ASSERT_FALSE(engine_.receive_prefetch.empty()) << "it was looked up at once: this test tests nothing";
    ASSERT_FALSE(comm::request_of(&receives_[i]).finalized());
  }

  static constexpr std::uint64_t nothing = ~std::uint64_t{0};
  LocalJob job_;
  comm::Engine& engine_ = job_.engine(1);
  std::vector<canele_session_t*> sessions_ = job_.open("many");
  std::vector<std::uint64_t> out_ = std::vector<std::uint64_t>(count), in_ = std::vector<std::uint64_t>(count);
  std::vector<canele_request_t> sends_{count}, receives_{count};
};

TEST_F(ReceivePrefetch, EachReceiveGetsItsMessageInAnyOrderOfPosting) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(20'261'123));
  for (const std::size_t i : order) post(i, i % 7 == 0 ? CANELE_ANY_SOURCE : 0, i % tags);
  for (std::size_t i = 0; i < count; ++i) ASSERT_TRUE(job_.finish(receives_[i]));
  std::vector<std::size_t> place(count);  // when each receive was posted
  for (std::size_t i = 0; i < count; ++i) place[order[i]] = i;
  for (std::size_t tag = 0; tag < tags; ++tag) {
    if (tag + tags >= count) {
      EXPECT_EQ(in_[tag], tag);
      continue;
    }
    const bool in_order = place[tag] < place[tag + tags];
    EXPECT_EQ(in_[tag], in_order ? tag : tag + tags);
    EXPECT_EQ(in_[tag + tags], in_order ? tag + tags : tag);
  }
}

TEST_F(ReceivePrefetch, AProbeDoesNotFindWhatAReceiveWasPostedFor) {
  post_unseen(0, 700);
  int found = 1;
  ASSERT_EQ(canele_iprobe(sessions_[1], 0, 700, CANELE_TAG_EXACT, &found, nullptr), CANELE_OK);
  EXPECT_EQ(found, 0);
  EXPECT_EQ(in_[0], 700u);
}

TEST_F(ReceivePrefetch, ALaterReceiveOfAnotherKindDoesNotOvertake) {
  post_unseen(0, 5);
  canele_request_t unbound{};  // no buffer: looked up at once
  ASSERT_EQ(canele_irecv_late(sessions_[1], 0, 5, CANELE_TAG_EXACT, &unbound), CANELE_OK);
  EXPECT_TRUE(engine_.receive_prefetch.empty());
  EXPECT_EQ(in_[0], 5u);
  std::uint64_t second = nothing;
  const canele_data_t data = canele_data_contiguous(&second, sizeof second);
  ASSERT_EQ(canele_receive_bind(&unbound, &data), CANELE_OK) << canele_error_detail();
  ASSERT_TRUE(job_.finish(unbound));
  EXPECT_EQ(second, 5 + tags);
}

TEST_F(ReceivePrefetch, ACancelComesTooLateForAMessageThatIsThere) {
  post_unseen(0, 9);
  ASSERT_EQ(canele_cancel(&receives_[0]), CANELE_OK);
  ASSERT_TRUE(job_.finish(receives_[0]));
  EXPECT_EQ(status_of(receives_[0]).cancelled, 0);
  EXPECT_EQ(in_[0], 9u);
}

TEST_F(ReceivePrefetch, ACancelTakesOutWhatHasNoMessage) {
  post_unseen(0, 1'000'000);
  ASSERT_EQ(canele_cancel(&receives_[0]), CANELE_OK);
  ASSERT_TRUE(job_.finish(receives_[0]));
  EXPECT_EQ(status_of(receives_[0]).cancelled, 1);
}

TEST_F(ReceivePrefetch, AMessageThatComesMeetsIt) {
  post_unseen(0, 1'000'000);
  std::uint64_t value = 77;
  canele_request_t send{};
  ASSERT_EQ(canele_isend(sessions_[0], 1, 1'000'000, &value, sizeof value, &send), CANELE_OK);
  ASSERT_TRUE(job_.finish(receives_[0]) && job_.finish(send));
  EXPECT_EQ(in_[0], 77u);
  EXPECT_EQ(unexpected(), count);
}

/// A thread that sleeps on the drivers would not see it, and the thread that posts may go on to wait for the other's
/// turn.
TEST_F(ReceivePrefetch, NothingWaitsThereWhileAThreadSleeps) {
  canele_request_t never{};
  std::uint64_t value = 0;
  ASSERT_EQ(canele_irecv(sessions_[1], 0, 2'000'000, CANELE_TAG_EXACT, &value, sizeof value, &never), CANELE_OK);
  std::thread sleeper([&] { canele_wait(&never, nullptr); });
  ASSERT_TRUE(job_.until([&] {
    engine_.lock_for_callback();
    const bool asleep = engine_.driver_set.armed;
    if (asleep) {
      EXPECT_FALSE(engine_.may_look_up_later());
    }
    engine_.unlock();
    return asleep;
  }));
  post(3, 0, 3);
  ASSERT_EQ(canele_wait(&receives_[3], nullptr), CANELE_OK);
  EXPECT_EQ(in_[3], 3u);
  std::uint64_t end = 1;
  canele_request_t send{};
  ASSERT_EQ(canele_isend(sessions_[0], 1, 2'000'000, &end, sizeof end, &send), CANELE_OK);
  EXPECT_TRUE(job_.until([&] { return comm::request_of(&never).finalized(); }));
  sleeper.join();
}

}  // namespace
}  // namespace canele::test
