// SPDX-License-Identifier: BSD-3-Clause
//
// The first contact of an origin and a target of one-sided operations: opening a key begins it, and the on-demand
// threads of both ranks go on with it. Later the target's on-demand thread answers for as long as nothing else polls.
//
// One thread drives both engines.
#include <canele/one_sided.h>

#include <atomic>
#include <string>
#include <vector>

#include "tests/unit/ltask/real_platform.hpp"
#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

/// Rank 1 has memory, and rank 0 its key.
class EarlyContact : public testing::TestWithParam<const char*> {
 protected:
  EarlyContact() : job_({2, {comm::find_driver("self"), comm::find_driver(GetParam())}, "aggregate", {}}) {
    EXPECT_EQ(canele_memory_register(job_.handle(1), memory_, sizeof memory_, nullptr, &registered_), CANELE_OK);
    EXPECT_EQ(canele_memory_key(registered_, bytes_), CANELE_OK);
    EXPECT_EQ(canele_key_open(job_.handle(0), bytes_, &key_), CANELE_OK) << canele_error_detail();
  }
  ~EarlyContact() override {
    EXPECT_EQ(canele_key_close(key_), CANELE_OK);
    EXPECT_EQ(canele_memory_free(registered_), CANELE_OK);
  }
  bool connected(int rank) {
    const comm::Peer* const peer = job_.engine(rank).peers[1 - rank];
    return peer != nullptr && peer->state == comm::Peer::State::up;
  }
  bool connect() {
    return job_.until([this] { return connected(0) && connected(1); });
  }

  LocalJob job_;
  std::uint64_t memory_[8] = {};
  unsigned char bytes_[CANELE_KEY_SIZE];
  canele_memory_t* registered_ = nullptr;
  canele_key_t* key_ = nullptr;
};

TEST_P(EarlyContact, BeginsWhenAKeyIsOpened) {
  EXPECT_FALSE(connected(0));
  EXPECT_TRUE(connect()) << "no operation is needed";
  canele_key_t* again = nullptr;
  ASSERT_EQ(canele_key_open(job_.handle(0), bytes_, &again), CANELE_OK);
  EXPECT_EQ(canele_key_close(again), CANELE_OK);
}

TEST_P(EarlyContact, NeedsTheOnDemandThreadUntilItIsMade) {
  EXPECT_TRUE(job_.engine(0).serves_others());
  EXPECT_TRUE(job_.engine(0).unfinished());
  ASSERT_TRUE(connect());
  EXPECT_FALSE(job_.engine(0).serves_others()) << "rank 0 has no memory that others access";
  EXPECT_TRUE(job_.engine(1).serves_others());
}

TEST_P(EarlyContact, AnswersAreNotPostsOfTheProgram) {
  ASSERT_TRUE(connect());
  while (job_.step_all() > 0) continue;
  job_.engine(1).check_coverage();
  std::uint64_t value = 0;
  const canele_data_t into = canele_data_contiguous(&value, sizeof value);
  constexpr int many = 200;
  for (int i = 0; i < many; ++i) {
    canele_request_t request{};
    ASSERT_EQ(canele_get(key_, 0, &into, nullptr, &request), CANELE_OK) << canele_error_detail();
    while (!comm::request_of(&request).finalized()) {
      job_.engine(0).step();
      ASSERT_GE(job_.engine(1).help(), 0) << "the on-demand thread leaves the target after " << i << " answers";
    }
  }
}

class ManualClock final : public RealPlatform {
 public:
  std::uint64_t now_ns() noexcept override { return now_.load(); }
  void pass(std::uint64_t ns) { now_ += ns; }

 private:
  std::atomic<std::uint64_t> now_{1};
};

/// The on-demand thread asks a thread that goes on posting for a step. It helps one that posts now and then.
TEST(PostsOfATarget, SeldomOnesDoNotEndTheHelp) {
  ManualClock clock;
  JobOptions options;
  options.platform = &clock;
  LocalJob job(options);
  const std::vector<canele_session_t*> s = job.open("posts");
  std::uint64_t word = 0;
  canele_memory_t* memory = nullptr;
  ASSERT_EQ(canele_memory_register(job.handle(0), &word, sizeof word, nullptr, &memory), CANELE_OK);
  constexpr std::size_t many = 200;
  std::vector<canele_request_t> receives(2 * many), sends(2 * many);
  std::uint64_t in = 0;
  const auto post = [&](std::size_t i) {
    ASSERT_EQ(canele_irecv(s[0], 1, 1, CANELE_TAG_EXACT, &in, sizeof in, &receives[i]), CANELE_OK);
  };
  job.engine(0).check_coverage();
  for (std::size_t i = 0; i < many; ++i) {
    post(i);
    clock.pass(100'000);
    ASSERT_GE(job.engine(0).help(), 0) << "after " << i << " posts";
  }
  job.engine(0).check_coverage();
  for (std::size_t i = many; i < 2 * many; ++i) post(i);
  EXPECT_EQ(job.engine(0).help(), -1);
  for (canele_request_t& send : sends) ASSERT_EQ(canele_isend(s[1], 0, 1, &word, sizeof word, &send), CANELE_OK);
  EXPECT_TRUE(job.finish(receives.back()) && job.finish(sends.back()));
  EXPECT_EQ(canele_memory_free(memory), CANELE_OK);
}

INSTANTIATE_TEST_SUITE_P(Drivers, EarlyContact, testing::Values("shm", "tcp"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace canele::test
