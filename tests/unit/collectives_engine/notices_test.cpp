// SPDX-License-Identifier: BSD-3-Clause
//
// Notices of a failed collective reach every rank that waits: without credit, and although the ranks between have
// destroyed the group. One thread.
#include <memory>

#include "comm/api/collective_call.hpp"
#include "comm/collectives/group.hpp"
#include "ranks.hpp"

namespace canele::test {
namespace {

const canele_collective_options_t flat = options_of(CANELE_ALGORITHM_FLAT);

/// Rank `sender` has no credit at rank `receiver`, where messages wait that no receive takes.
class WithoutCredit : public testing::Test {
 protected:
  static constexpr int size = 2, sender = 1, receiver = 0;
  static constexpr std::size_t length = 1000, count = 400;

  WithoutCredit() : ranks_(job_of("tcp", size, {"CANELE_VERBOSE=0", "CANELE_UNEXPECTED_MEMORY=256k"})) {
    Everywhere all(ranks_, {Op::alltoall, size, 1});
    all.start_all(&flat);
    all.finish("all ranks are connected");
    sessions_ = ranks_.job.open("never received");
  }
  ~WithoutCredit() override {
    std::vector<char> bytes(length);
    for (canele_request_t& send : sends_) {
      canele_request_t receive{};
      EXPECT_EQ(canele_irecv(sessions_[receiver], sender, 0, CANELE_TAG_EXACT, bytes.data(), length, &receive),
                CANELE_OK);
      EXPECT_TRUE(ranks_.job.finish(receive) && ranks_.job.finish(send));
    }
  }
  void use_up_credit() {
    for (canele_request_t& send : sends_)
      ASSERT_EQ(canele_isend(sessions_[sender], receiver, 0, bytes_.data(), length, &send), CANELE_OK);
    settle();
    ASSERT_GT(ranks_.job.engine(sender).counters.read(comm::Counter::credit_blocked_now), 0u);
  }
  void settle() {
    ASSERT_TRUE(ranks_.job.until([&] { return ranks_.job.step_all() == 0; }));
  }
  void ends(Everywhere& collective, int rank, int error) {
    ASSERT_TRUE(ranks_.job.finish(collective.request(rank))) << "rank " << rank;
    EXPECT_EQ(status_of(collective.request(rank)).error, error) << "rank " << rank;
  }

  Ranks ranks_;
  std::vector<canele_session_t*> sessions_;
  std::vector<char> bytes_ = std::vector<char>(length);
  std::vector<canele_request_t> sends_{count};
};

TEST_F(WithoutCredit, ANoticeIsTakenWhereItsReceiverWaits) {
  use_up_credit();
  Everywhere waits(ranks_, {Op::bcast, size, 10, sender});
  waits.start(receiver, &flat);
  settle();
  ASSERT_EQ(canele_group_revoke(ranks_.group(sender)), CANELE_OK);
  ends(waits, receiver, CANELE_ESTATE);
}

TEST_F(WithoutCredit, ANoticeIsTakenWhereNothingIsPosted) {
  use_up_credit();
  ASSERT_EQ(canele_group_revoke(ranks_.group(sender)), CANELE_OK);
  EXPECT_TRUE(ranks_.job.until([&] {
    ranks_.job.step_all();
    return comm::api::group_of(ranks_.group(receiver)).has_ended();
  }));
}

TEST_F(WithoutCredit, ANoticeIsTakenByAGroupThatIsMadeLater) {
  canele_group_t *early = nullptr, *late = nullptr;
  ASSERT_EQ(canele_group_create(ranks_.job.handle(sender), "later", nullptr, 0, &early), CANELE_OK);
  use_up_credit();
  ASSERT_EQ(canele_group_revoke(early), CANELE_OK);
  settle();
  ASSERT_EQ(canele_group_create(ranks_.job.handle(receiver), "later", nullptr, 0, &late), CANELE_OK);
  EXPECT_TRUE(ranks_.job.until([&] {
    ranks_.job.step_all();
    return comm::api::group_of(late).has_ended();
  }));
  EXPECT_EQ(canele_group_destroy(early), CANELE_OK);
  EXPECT_EQ(canele_group_destroy(late), CANELE_OK);
}

/// Each notice is of another collective. One of a sender is kept at a time.
TEST_F(WithoutCredit, SeveralNoticesAreTakenOneAfterTheOther) {
  constexpr int failures = 20;
  use_up_credit();
  for (int i = 0; i < failures; ++i) ASSERT_EQ(canele_group_skip(ranks_.group(sender), CANELE_ENOMEM), CANELE_OK);
  const comm::collectives::Group& group = comm::api::group_of(ranks_.group(receiver));
  for (std::uint64_t number = 1; number <= failures; ++number) {
    EXPECT_TRUE(ranks_.job.until([&] {
      ranks_.job.step_all();
      return group.failed(number);
    })) << "collective "
        << number;
  }
}

/// The root has given up the collective when the sender begins it.
TEST_F(WithoutCredit, AMessageOfAFailedCollectiveIsDiscarded) {
  use_up_credit();
  Everywhere gather(ranks_, {Op::gather, size, 10, receiver});
  gather.start(sender, &flat);
  settle();
  EXPECT_FALSE(gather.done(sender));
  ASSERT_EQ(canele_group_skip(ranks_.group(receiver), CANELE_ENOMEM), CANELE_OK);
  ASSERT_TRUE(ranks_.job.finish(gather.request(sender)));
}

/// The sender had credit when the root gave the collective up, and begins it when it has none.
TEST_F(WithoutCredit, AMessageThatComesLateIsDiscarded) {
  Everywhere gather(ranks_, {Op::gather, size, 10, receiver});
  comm::api::group_of(ranks_.group(receiver)).note(1, {CANELE_EPROTOCOL, sender});  // no notice has arrived yet
  use_up_credit();
  gather.start(sender, &flat);
  ASSERT_TRUE(ranks_.job.finish(gather.request(sender)));
}

/// A gather in which all but the root and rank `first` are done, and have destroyed the group. The root is no neighbour
/// of that rank, so that only that rank can notify it.
class RanksBetweenAreGone : public testing::Test {
 protected:
  static constexpr int size = 8, first = 0, root = 3;

  RanksBetweenAreGone()
      : ranks_(job_of("shm", size, {"CANELE_VERBOSE=0"})), gather_(ranks_, {Op::gather, size, 4, root}) {
    for (int rank = 0; rank < size; ++rank) {
      if (rank == first) continue;
      gather_.start(rank, &flat);
      if (rank == root) continue;
      EXPECT_TRUE(ranks_.job.finish(gather_.request(rank)));
      EXPECT_EQ(canele_group_destroy(std::exchange(ranks_.groups[static_cast<std::size_t>(rank)], nullptr)), CANELE_OK);
    }
  }
  void root_ends(int error) {
    ASSERT_TRUE(ranks_.job.finish(gather_.request(root)));
    EXPECT_EQ(status_of(gather_.request(root)).error, error);
  }

  Ranks ranks_;
  Everywhere gather_;
};

TEST_F(RanksBetweenAreGone, TheRootHearsOfARevokedGroup) {
  ASSERT_EQ(canele_group_revoke(ranks_.group(first)), CANELE_OK);
  root_ends(CANELE_ESTATE);
}

TEST_F(RanksBetweenAreGone, TheRootHearsOfASkippedCollective) {
  ASSERT_EQ(canele_group_skip(ranks_.group(first), CANELE_ENOMEM), CANELE_OK);
  root_ends(CANELE_ENOMEM);
}

/// The rank has heard from another one that the collective has failed, and leaves out its send.
TEST_F(RanksBetweenAreGone, TheRootHearsOfASendThatIsLeftOut) {
  comm::api::group_of(ranks_.group(first)).note(0, {CANELE_EPROTOCOL, 1});
  gather_.start(first, &flat);
  root_ends(CANELE_EPROTOCOL);
}

TEST_F(RanksBetweenAreGone, TheRootHearsOfASendThatABlockingCallLeavesOut) {
  comm::api::group_of(ranks_.group(first)).note(0, {CANELE_EPROTOCOL, 1});
  canele_collective_options_t blocking = flat;
  blocking.blocking = 1;
  gather_.start(first, &blocking);
  root_ends(CANELE_EPROTOCOL);
}

}  // namespace
}  // namespace canele::test
