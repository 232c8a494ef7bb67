// SPDX-License-Identifier: BSD-3-Clause
//
// Split trees by real engines and their workers: the widest levels wait for a thread that has time, any wait of any
// thread will do, and nothing waits for ever.
//
// A worker for each rank, and the threads of a test. What must not happen before a thread waits could happen late. So
// the deadlines are hours away here, except in the test about them.
#include <thread>

#include "comm/api/collective_call.hpp"
#include "ranks.hpp"

namespace canele::test {
namespace {

constexpr std::uint64_t hours_ns = 10'000'000'000'000;

/// Ranks with workers, in whose trees so many levels are left to the threads of the program.
class SplitRanks {
 public:
  SplitRanks(int size, int levels, const char* driver = "shm")
      : ranks(job_of(driver, size, {"CANELE_EXPERT_SPLIT_TREE=" + std::to_string(levels), "CANELE_HANG_REPORT=0"})) {
    for (int rank = 0; rank < size; ++rank)
      EXPECT_EQ(canele_worker_bind(ranks.job.handle(rank), CANELE_INDEX_LOGICAL, nullptr, 0), CANELE_OK);
  }
  ~SplitRanks() {
    for (int rank = 0; rank < ranks.size(); ++rank) canele_worker_stop(ranks.job.handle(rank));
  }
  comm::collectives::CallProfile& profile(int rank, const Case& what) {
    comm::collectives::Call call;
    call.operation = what.op == Op::bcast ? comm::collectives::Operation::bcast : comm::collectives::Operation::reduce;
    call.size = what.size;
    call.root = what.root;
    call.length = what.length * sizeof(Affine);
    return *comm::api::group_of(ranks.group(rank)).split_policy.find(call, 2);
  }
  /// Reports that the program will compute for hours.
  void deferred_for_long(const Case& what) {
    for (int rank = 0; rank < ranks.size(); ++rank) profile(rank, what).seen(hours_ns, false);
  }
  /// Lets all workers make progress, many times; no thread waits.
  void let_workers_work() {
    for (int round = 0; round < 50; ++round) {
      Everywhere barrier(ranks, {Op::barrier, ranks.size()});
      barrier.start_all();
      while (!barrier.done()) std::this_thread::yield();
    }
  }

  Ranks ranks;
};

const canele_collective_options_t binomial = options_of(CANELE_ALGORITHM_BINOMIAL);

/// 0 -> 2 is of the upper level; 0 -> 1 and 2 -> 3 are of the widest one.
TEST(Split, WidestLevelsOfABroadcastWaitForWhoHasTime) {
  for (const char* driver : {"shm", "tcp"}) {
    SplitRanks split(4, 1, driver);
    const Case what{Op::bcast, 4, 20'000};
    split.deferred_for_long(what);
    Everywhere all(split.ranks, what);
    all.start_all(&binomial);
    split.let_workers_work();
    EXPECT_FALSE(all.done(1) || all.done(2) || all.done(3)) << driver;
    while (!all.done()) {
      for (int rank = 0; rank < 4; ++rank) {
        int done = 0;
        canele_test(&all.request(rank), &done, nullptr);
      }
      std::this_thread::yield();
    }
    all.finish(driver);
  }
}

/// A wait for one collective releases the other, too. Otherwise these two ranks would wait for each other for hours.
TEST(Split, AnyWaitLetsAllGo) {
  SplitRanks split(2, 1);
  const Case one{Op::bcast, 2, 20'000, 0}, other{Op::bcast, 2, 30'000, 1};
  split.deferred_for_long(one);
  split.deferred_for_long(other);
  Everywhere first(split.ranks, one), second(split.ranks, other);
  first.start_all(&binomial);
  second.start_all(&binomial);
  std::thread opposite([&] {
    canele_wait(&second.request(1), nullptr);
    canele_wait(&first.request(1), nullptr);
  });
  canele_wait(&first.request(0), nullptr);
  canele_wait(&second.request(0), nullptr);
  opposite.join();
  first.finish("first");
  second.finish("second");
}

/// A wait, a probe, or a step of progress for anything else releases all, too.
TEST(Split, WhoeverAsksForSomethingElseLetsAllGo) {
  for (int way = 0; way < 3; ++way) {
    SplitRanks split(2, 1);
    const Case what{Op::bcast, 2, 20'000};
    split.deferred_for_long(what);
    Everywhere all(split.ranks, what);
    all.start_all(&binomial);
    for (int rank = 0; rank < 2; ++rank) {
      canele_engine_t* const engine = split.ranks.job.handle(rank);
      canele_session_t* session = nullptr;
      ASSERT_EQ(canele_session_open(engine, "other", CANELE_ORDER_PER_TAG, &session), CANELE_OK);
      int found = 0;
      canele_queue_t queue{};
      canele_request_t* taken = nullptr;
      if (way == 0) canele_iprobe(session, CANELE_ANY_SOURCE, 0, CANELE_TAG_ANY, &found, nullptr);
      if (way == 1) canele_progress(engine);
      if (way == 2) canele_queue_poll(engine, &queue, &taken, nullptr, 1);
    }
    while (!all.done()) std::this_thread::yield();
    all.finish("way");
  }
}

TEST(Split, WhatNobodyWaitsForBeginsAllTheSame) {
  SplitRanks split(4, 2);
  Everywhere all(split.ranks, {Op::bcast, 4, 20'000});
  all.start_all(&binomial);
  while (!all.done()) std::this_thread::yield();
  all.finish("expired");
}

TEST(Split, ACallThatStaysGivesUpOnThoseWhoHaveNotBegun) {
  SplitRanks split(4, 2);
  Everywhere all(split.ranks, {Op::reduce, 4, 20'000});
  for (int rank = 0; rank < 4; ++rank) all.start(rank, &binomial);  // one thread: each call returns
  while (!all.done()) std::this_thread::yield();
  all.finish("alone");
}

TEST(Split, EveryOperationWithEverySplitByThreadsOfTheirOwn) {
  constexpr int size = 5, rounds = 4;
  for (int levels = 0; levels <= 3; ++levels) {
    SplitRanks split(size, levels);
    for (const Op op : {Op::bcast, Op::reduce, Op::gather, Op::scatter}) {
      for (int round = 0; round < rounds; ++round) {
        Case what{op, size, 10'000, round % size};
        what.commutes = round % 2 == 0;
        Everywhere all(split.ranks, what);
        std::vector<std::thread> threads;
        for (int rank = 0; rank < size; ++rank) {
          threads.emplace_back([&, rank] {
            all.start(rank, &binomial);
            EXPECT_EQ(canele_wait(&all.request(rank), nullptr), CANELE_OK);
          });
        }
        for (std::thread& thread : threads) thread.join();
        all.finish(op_names[static_cast<int>(op)]);
      }
    }
  }
}

TEST(Split, WhatTheProgramComputesIsSeen) {
  SplitRanks split(2, 1);
  const Case what{Op::bcast, 2, 20'000};
  split.deferred_for_long(what);
  Everywhere all(split.ranks, what);
  all.start_all(&binomial);
  std::thread other([&] { canele_wait(&all.request(1), nullptr); });
  canele_wait(&all.request(0), nullptr);
  other.join();
  for (int rank = 0; rank < 2; ++rank) {
    const std::uint64_t mean = split.profile(rank, what).computation_ns();
    EXPECT_LT(mean, hours_ns) << "less than what it was told before";
    EXPECT_GE(mean, hours_ns / 2);
  }
}

}  // namespace
}  // namespace canele::test
