// SPDX-License-Identifier: BSD-3-Clause
//
// A rank that dies: the requests of all ranks end, with one error, now and later. Ranks that disagree: one collective
// fails on all of them. One thread.
//
// A rank dies by the destruction of its engine: its connections break, without any message before.
#include <optional>

#include "comm/api/collective_call.hpp"
#include "comm/collectives/discard_receiver.hpp"
#include "comm/collectives/group.hpp"
#include "ranks.hpp"

namespace canele::test {
namespace {

/// Ranks that are all connected; the last one dies.
class Death : public testing::Test {
 protected:
  static constexpr int size = 5, victim = size - 1;

  Death() : ranks_(job_of("tcp", size, {"CANELE_VERBOSE=0"})) {
    const canele_collective_options_t flat = options_of(CANELE_ALGORITHM_FLAT);
    Everywhere all(ranks_, {Op::alltoall, size, 1});
    all.start_all(&flat);
    all.finish("all ranks are connected");
  }
  void die() {
    ranks_.job.destroy(victim);
    ranks_.groups.pop_back();
  }
  void ends_with_the_victim(canele_request_t& request, const char* what) {
    ASSERT_TRUE(ranks_.job.finish(request)) << what;
    const canele_status_t status = status_of(request);
    EXPECT_EQ(status.error, CANELE_EPEER) << what;
    EXPECT_EQ(status.source, victim) << what;
  }
  void all_end_with_the_victim(Everywhere& all, const char* what) {
    for (int rank = 0; rank < victim; ++rank) ends_with_the_victim(all.request(rank), what);
  }

  Ranks ranks_;
};

/// Returns whether every rank needs every other. A rank that needs nothing of the victim may be done before it dies:
/// the leaves of trees that lead to a root.
bool all_need_all(Op op) { return op != Op::gather && op != Op::reduce && op != Op::bcast && op != Op::scatter; }

TEST_F(Death, EndsEveryOperationEverywhere) {
  std::vector<std::unique_ptr<Everywhere>> all;
  for (int op = 0; op < op_count; ++op) {
    const Op one = static_cast<Op>(op);
    if (one == Op::scan || one == Op::exscan) continue;  // no rank needs the last one
    const int root = one == Op::bcast || one == Op::scatter ? victim : 0;
    all.push_back(std::make_unique<Everywhere>(ranks_, Case{one, size, 20'000, root}));
    for (int rank = 0; rank < victim; ++rank) all.back()->start(rank);
  }
  for (int i = 0; i < 50; ++i) ranks_.job.step_all();
  die();
  std::size_t at = 0;
  for (int op = 0; op < op_count - 2; ++op) {
    Everywhere& one = *all[at++];
    for (int rank = 0; rank < victim; ++rank) {
      ASSERT_TRUE(ranks_.job.finish(one.request(rank))) << op_names[op];
      const bool leaf = !all_need_all(static_cast<Op>(op)) && status_of(one.request(rank)).error == CANELE_OK;
      if (!leaf) ends_with_the_victim(one.request(rank), op_names[op]);
    }
  }
  Everywhere later(ranks_, {Op::barrier, size});
  for (int rank = 0; rank < victim; ++rank) later.start(rank);
  all_end_with_the_victim(later, "later");
}

TEST_F(Death, ReachesThoseWhoNeedOnlyTheLiving) {
  const canele_collective_options_t chain = options_of(CANELE_ALGORITHM_CHAIN);
  Everywhere bcast(ranks_, {Op::bcast, size, 1000, 3});  // 3 -> 4 (dead) -> 0 -> 1 -> 2: 2 waits for 1, which lives
  for (int rank = 0; rank < victim; ++rank) bcast.start(rank, &chain);
  die();
  for (const int rank : {0, 1, 2}) ends_with_the_victim(bcast.request(rank), "chain");
}

/// Rank 1 gives up after the first failure, and rank 0 is ahead by one collective, with a large message for rank 1.
TEST_F(Death, NobodyWaitsForWhoHasGivenUp) {
  const canele_collective_options_t flat = options_of(CANELE_ALGORITHM_FLAT);
  Everywhere first(ranks_, {Op::reduce, size, 10, 1}), second(ranks_, {Op::bcast, size, 100'000, 0});
  for (const int rank : {0, 2, 3}) first.start(rank, &flat);
  ASSERT_TRUE(ranks_.job.until([&] { return first.done(0) && first.done(2) && first.done(3); }));
  for (const int rank : {0, 2, 3}) second.start(rank, &flat);
  for (int i = 0; i < 200; ++i) ranks_.job.step_all();
  EXPECT_FALSE(second.done(0)) << "rank 1 has not asked for it";
  first.start(1, &flat);
  die();
  ends_with_the_victim(first.request(1), "the rank that notices");
  for (const int rank : {0}) ends_with_the_victim(second.request(rank), "the rank that is ahead");
}

/// A message that was laid down for the victim is removed, although its sender has continued.
TEST(DeathOfOneHost, TakesAwayWhatLiesThereForIt) {
  constexpr int size = 3;
  Ranks ranks(job_of("shm", size, {"CANELE_EXPERT_SHM_BROADCAST_SEGMENT=on", "CANELE_VERBOSE=0"}));
  const canele_collective_options_t flat = options_of(CANELE_ALGORITHM_FLAT);
  Everywhere first(ranks, {Op::alltoall, size, 1}),
      second(ranks, {Op::bcast, size, 130'000 / Side::element});  // not in pieces
  first.start_all(&flat);
  first.finish("all ranks are connected");
  ranks.job.engine(0).oversubscribed = true;
  second.start(0, &flat);
  EXPECT_TRUE(second.done(0)) << "it lies there";
  EXPECT_EQ(ranks.job.engine(0).large.buffered_count.load(), 2u);
  ranks.job.destroy(size - 1);
  ranks.groups.pop_back();
  EXPECT_TRUE(ranks.job.until([&] { return ranks.job.engine(0).large.buffered_count.load() == 1; })) << "rank 1 lives";
}

TEST_F(Death, OfARankOutsideOfTheGroupIsNothingToIt) {
  const int living[] = {3, 1, 0, 2};
  std::vector<canele_group_t*> groups(victim);
  std::vector<canele_request_t> requests(victim);
  for (int rank = 0; rank < victim; ++rank) {
    auto& group = groups[static_cast<std::size_t>(rank)];
    ASSERT_EQ(canele_group_create(ranks_.job.handle(rank), "living", living, std::size(living), &group), CANELE_OK);
  }
  EXPECT_EQ(canele_group_rank(groups[3]), 0);
  EXPECT_EQ(canele_group_size(groups[3]), victim);
  die();
  for (int round = 0; round < 5; ++round) {
    for (std::size_t i = 0; i < victim; ++i) {
      ASSERT_EQ(canele_ibarrier(groups[i], nullptr, &requests[i]), CANELE_OK) << canele_error_detail();
    }
    for (std::size_t i = 0; i < victim; ++i) {
      ASSERT_TRUE(ranks_.job.finish(requests[i]));
      EXPECT_EQ(status_of(requests[i]).error, CANELE_OK);
    }
  }
  for (canele_group_t* group : groups) EXPECT_EQ(canele_group_destroy(group), CANELE_OK);
}

/// Rank 0 is told by one group and gives up; the others wait for it in another group.
TEST_F(Death, EndsAllGroupsThatHaveTheRank) {
  std::vector<canele_group_t*> groups(victim);
  std::vector<canele_request_t> requests(victim);
  for (int rank = 0; rank < victim; ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    ASSERT_EQ(canele_group_create(ranks_.job.handle(rank), "second", nullptr, 0, &groups[i]), CANELE_OK);
  }
  const canele_collective_options_t chain = options_of(CANELE_ALGORITHM_CHAIN);
  char word[8] = {};
  for (const std::size_t i : {1u, 2u, 3u}) {  // each waits for a rank that lives
    ASSERT_EQ(canele_ibcast(groups[i], word, sizeof word, 0, &chain, &requests[i]), CANELE_OK);
  }
  for (int i = 0; i < 100; ++i) ranks_.job.step_all();
  Everywhere first(ranks_, {Op::reduce, size, 10, 0});
  const canele_collective_options_t flat = options_of(CANELE_ALGORITHM_FLAT);
  first.start(0, &flat);
  die();
  ends_with_the_victim(first.request(0), "the first group");
  for (const std::size_t i : {1u, 2u, 3u}) ends_with_the_victim(requests[i], "the second");
  for (canele_group_t* group : groups) EXPECT_EQ(canele_group_destroy(group), CANELE_OK);
}

/// A rank that makes a group is told of a failure that came before.
TEST_F(Death, IsHeardByWhoComesLate) {
  std::vector<canele_group_t*> groups(size);
  std::vector<canele_request_t> requests(size);
  const auto create = [&](std::size_t rank) {
    ASSERT_EQ(canele_group_create(ranks_.job.handle(static_cast<int>(rank)), "late", nullptr, 0, &groups[rank]),
              CANELE_OK);
  };
  die();
  for (const std::size_t rank : {0u, 1u, 2u}) {
    create(rank);
    ASSERT_EQ(canele_ibarrier(groups[rank], nullptr, &requests[rank]), CANELE_OK);
  }
  for (const std::size_t rank : {0u, 1u, 2u}) ends_with_the_victim(requests[rank], "early");
  create(3);
  for (int i = 0; i < 200; ++i) ranks_.job.step_all();
  ASSERT_EQ(canele_ibarrier(groups[3], nullptr, &requests[3]), CANELE_OK);
  ends_with_the_victim(requests[3], "late");
  for (const std::size_t rank : {0u, 1u, 2u, 3u}) EXPECT_EQ(canele_group_destroy(groups[rank]), CANELE_OK);
  canele_group_t* again = nullptr;
  EXPECT_EQ(canele_group_create(ranks_.job.handle(0), "late", nullptr, 0, &again), CANELE_EBUSY);
}

/// Rank 4 gives up, and leaves before the others have told rank 1. Rank 1 waits for it, and is not its neighbour.
TEST(GivingUp, TellsWhoWaitsBeforeItLeaves) {
  constexpr int size = 6, waits = 1, leaves = 4, victim = 5;
  Ranks ranks(job_of("tcp", size, {"CANELE_VERBOSE=0"}));
  const canele_collective_options_t flat = options_of(CANELE_ALGORITHM_FLAT);
  Everywhere all(ranks, {Op::alltoall, size, 1});
  all.start_all(&flat);
  all.finish("all ranks are connected");
  Everywhere first(ranks, {Op::reduce, size, 10, leaves}), second(ranks, {Op::bcast, size, 10, leaves});
  first.start(waits, &flat);
  ASSERT_TRUE(ranks.job.finish(first.request(waits)));
  second.start(waits, &flat);
  ranks.job.destroy(victim);
  const auto step_until_done = [&](Everywhere& what, int rank) {
    for (int i = 0; i < 100'000 && !what.done(rank); ++i) ranks.job.engine(rank).step();
    return status_of(what.request(rank));
  };
  first.start(leaves, &flat);
  EXPECT_EQ(step_until_done(first, leaves).source, victim);
  comm::collectives::Group::notify_before_disconnect(ranks.job.engine(leaves));
  for (int i = 0; i < 100; ++i) ranks.job.engine(leaves).step();
  ranks.job.destroy(leaves);
  ranks.groups.resize(leaves);
  const canele_status_t status = step_until_done(second, waits);
  EXPECT_EQ(status.error, CANELE_EPEER);
  EXPECT_EQ(status.source, victim);
}

/// Rank 1 gave up before it made the group: it waits for its end, and learns of the group only then.
TEST(GivingUp, LetsGoWhoSendsToAGroupThatWasNeverMade) {
  std::optional<comm::collectives::ShutdownDiscards> discards;  // until rank 1's engine is destroyed
  LocalJob job(job_of("tcp", 3, {"CANELE_VERBOSE=0"}));
  discards.emplace(job.engine(1));
  canele_group_t* group = nullptr;
  ASSERT_EQ(canele_group_create(job.handle(0), "later", nullptr, 0, &group), CANELE_OK);
  std::vector<char> data(100'000);
  const canele_collective_options_t flat = options_of(CANELE_ALGORITHM_FLAT);
  canele_request_t request{};
  ASSERT_EQ(canele_ibcast(group, data.data(), data.size(), 0, &flat, &request), CANELE_OK);
  for (int i = 0; i < 200; ++i) job.step_all();
  EXPECT_FALSE(comm::request_of(&request).finalized()) << "rank 2 lives, and has not asked for it";
  job.destroy(2);
  ASSERT_TRUE(job.finish(request));
  const canele_status_t status = status_of(request);
  EXPECT_EQ(status.error, CANELE_EPEER);
  EXPECT_EQ(status.source, 2);
  EXPECT_EQ(canele_group_destroy(group), CANELE_OK);
}

/// A rank that cannot take part in one collective.
TEST(GivingUp, OfOneCollectiveIsToldBySkippingIt) {
  constexpr int size = 4, skips = 1;
  Ranks ranks(job_of("shm", size, {"CANELE_VERBOSE=0"}));
  Everywhere first(ranks, {Op::allgather, size, 20'000}), second(ranks, {Op::allreduce, size, 1000});
  for (const int rank : {0, 2, 3}) first.start(rank);
  ASSERT_EQ(canele_group_skip(ranks.group(skips), CANELE_ENOMEM), CANELE_OK);
  second.start_all();
  for (const int rank : {0, 2, 3}) {
    ASSERT_TRUE(ranks.job.finish(first.request(rank)));
    EXPECT_EQ(status_of(first.request(rank)).error, CANELE_ENOMEM);
    EXPECT_EQ(status_of(first.request(rank)).source, skips);
  }
  second.finish("the next one");
  EXPECT_EQ(canele_group_skip(ranks.group(skips), CANELE_EPEER), CANELE_EINVAL);
  EXPECT_EQ(canele_group_skip(nullptr, CANELE_ENOMEM), CANELE_EINVAL);
}

/// A rank that takes no more part: the others wait for it in no collective, now or later.
TEST(GivingUp, IsToldByRevokingTheGroup) {
  constexpr int size = 4, revoker = 2;
  Ranks ranks(job_of("tcp", size, {"CANELE_VERBOSE=0"}));
  Everywhere first(ranks, {Op::allreduce, size, 1000}), second(ranks, {Op::barrier, size, 0});
  for (const int rank : {0, 1, 3}) first.start(rank);
  ASSERT_EQ(canele_group_revoke(ranks.group(revoker)), CANELE_OK);
  ASSERT_EQ(canele_group_revoke(ranks.group(revoker)), CANELE_OK) << "again";
  for (const int rank : {0, 1, 3}) second.start(rank);
  for (const int rank : {0, 1, 3}) {
    for (Everywhere* const one : {&first, &second}) {
      ASSERT_TRUE(ranks.job.finish(one->request(rank)));
      EXPECT_EQ(status_of(one->request(rank)).error, CANELE_ESTATE);
      EXPECT_EQ(status_of(one->request(rank)).source, revoker);
    }
  }
  first.start(revoker);
  ASSERT_TRUE(ranks.job.finish(first.request(revoker)));
  EXPECT_EQ(status_of(first.request(revoker)).error, CANELE_ESTATE);
  EXPECT_EQ(canele_group_revoke(nullptr), CANELE_EINVAL);
}

/// Ranks that do not agree on the length of a broadcast by rank 0.
class Disagreement : public testing::TestWithParam<const char*> {
 protected:
  static constexpr int size = 3;
  static constexpr std::size_t right = 100;

  Disagreement() : ranks_(job_of(GetParam(), size, {"CANELE_VERBOSE=0"})) {
    binomial_.segment = 1'000'000;  // the model may choose by the length
  }
  void start(int rank, std::size_t length) {
    const auto at = static_cast<std::size_t>(rank);
    ASSERT_EQ(canele_ibcast(ranks_.group(rank), memory_[at].data(), length, 0, &binomial_, &requests_[at]), CANELE_OK);
  }
  int outcome(int rank) {
    canele_request_t& request = requests_[static_cast<std::size_t>(rank)];
    EXPECT_TRUE(ranks_.job.finish(request));
    return status_of(request).error;
  }
  void all_succeed(Op op, std::size_t length) {
    Everywhere later(ranks_, {op, size, length});
    later.start_all();
    later.finish(std::string("later: ") + op_names[static_cast<int>(op)]);
  }

  Ranks ranks_;
  canele_collective_options_t binomial_ = options_of(CANELE_ALGORITHM_BINOMIAL);
  std::vector<std::vector<unsigned char>> memory_{3, std::vector<unsigned char>(300'000, 7)};
  std::vector<canele_request_t> requests_{3};
};

TEST_P(Disagreement, FailsTheCollectiveAndNotTheNextOnes) {
  for (const std::size_t other : {1u, 10u, 99u, 101u, 5000u, 200'000u}) {
    for (int rank = 0; rank < size; ++rank) start(rank, rank == 0 ? other : right);
    for (const int rank : {1, 2}) {
      EXPECT_EQ(outcome(rank), CANELE_EPROTOCOL) << other;
      EXPECT_EQ(memory_[static_cast<std::size_t>(rank)][right], 7) << "behind the buffer";
    }
    outcome(0);  // it may have sent all before it was told
    all_succeed(Op::barrier, 0);
    all_succeed(Op::allreduce, 1000);
    all_succeed(Op::alltoall, 20'000);
  }
}

/// The next collective is in progress, on all ranks, when the first one fails.
TEST_P(Disagreement, LeavesOthersInProgressAlone) {
  Everywhere beside(ranks_, {Op::alltoall, size, 30'000});
  for (int rank = 0; rank < size; ++rank) {
    start(rank, rank == 0 ? 200'000 : right);
    beside.start(rank);
  }
  beside.finish("beside");
  for (const int rank : {1, 2}) EXPECT_EQ(outcome(rank), CANELE_EPROTOCOL);
  outcome(0);
}

/// Rank 2 is told before it starts. A sender waits for its receive, which never comes.
TEST_P(Disagreement, IsHeardByARankThatStartsLater) {
  const canele_collective_options_t flat = options_of(CANELE_ALGORITHM_FLAT);
  binomial_ = flat;
  start(0, 200'000);
  start(1, right);
  EXPECT_EQ(outcome(1), CANELE_EPROTOCOL);
  outcome(0);  // it ends: rank 2 has discarded its message
  start(2, 200'000);
  EXPECT_EQ(outcome(2), CANELE_EPROTOCOL);
  all_succeed(Op::bcast, 50'000);
}

/// Rank 0 sends its part after the failure at the root, of which it has not heard. The root keeps nothing of it.
TEST_P(Disagreement, DiscardsMessagesThatComeLate) {
  const std::vector<canele_session_t*> sessions = ranks_.job.open("connect");
  const unsigned char word = 0;
  unsigned char got = 1;
  canele_request_t send{}, receive{}, early{};
  ASSERT_EQ(canele_isend(sessions[0], 1, 0, &word, sizeof word, &send), CANELE_OK);
  ASSERT_EQ(canele_irecv(sessions[1], 0, 0, CANELE_TAG_EXACT, &got, sizeof got, &receive), CANELE_OK);
  ASSERT_TRUE(ranks_.job.finish(receive) && ranks_.job.finish(send));

  binomial_ = options_of(CANELE_ALGORITHM_FLAT);
  Everywhere gather(ranks_, {Op::gather, size, 1000, 1});
  canele_session_t* const session = comm::api::public_of(comm::api::group_of(ranks_.group(2)).session);
  ASSERT_EQ(canele_isend(session, 1, 0, &word, sizeof word, &early), CANELE_OK);  // in place of rank 2's part
  ASSERT_TRUE(ranks_.job.finish(early));
  comm::Engine& root = ranks_.job.engine(1);
  gather.start(1, &binomial_);
  while (!comm::request_of(&gather.request(1)).finalized()) root.step();
  EXPECT_EQ(status_of(gather.request(1)).error, CANELE_EPROTOCOL);
  gather.start(0, &binomial_);
  ASSERT_TRUE(ranks_.job.finish(gather.request(0)));
  gather.start(2, &binomial_);
  ASSERT_TRUE(ranks_.job.finish(gather.request(2)));
  EXPECT_TRUE(ranks_.job.until([&] { return ranks_.job.step_all() == 0; }));
  EXPECT_EQ(comm::api::group_of(ranks_.group(1)).session.match.unexpected, 0u);
  all_succeed(Op::gather, 50'000);
}

/// The group is not closed, because messages of the failed collective may still come.
TEST_P(Disagreement, KeepsTheLabelOfADestroyedGroup) {
  for (int rank = 0; rank < size; ++rank) start(rank, rank == 0 ? 1 : right);
  for (const int rank : {0, 1, 2}) outcome(rank);
  ASSERT_EQ(canele_group_destroy(ranks_.group(1)), CANELE_OK);
  EXPECT_EQ(canele_group_create(ranks_.job.handle(1), "test", nullptr, 0, &ranks_.groups[1]), CANELE_EBUSY);
  ranks_.groups[1] = nullptr;
}

INSTANTIATE_TEST_SUITE_P(Drivers, Disagreement, testing::Values("shm", "tcp"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace canele::test
