// SPDX-License-Identifier: BSD-3-Clause
//
// When events happen: several collectives at a time, callbacks and queues, windows, which thread does the work, and how
// much of it a call does.
//
// One thread, and the workers where a test binds them. The work in progress is read from the engine's own counts,
// between two steps of it.
#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "ranks.hpp"

namespace canele::test {
namespace {

std::uint64_t messages_sent(LocalJob& job) {
  std::uint64_t sum = 0;
  for (int rank = 0; rank < job.size(); ++rank) {
    for (const auto& peer : job.engine(rank).active_peers) {
      sum += peer->counters.read(comm::Counter::messages_sent);
    }
  }
  return sum;
}

TEST(Events, CollectivesEndInAnotherOrderThanTheyBegan) {
  Ranks ranks(job_of("shm", 3));
  const canele_collective_options_t flat = options_of(CANELE_ALGORITHM_FLAT);
  Everywhere reduce(ranks, {Op::reduce, 3, 1000, 2}), bcast(ranks, {Op::bcast, 3, 1000, 0});
  for (const int rank : {2, 0}) {
    reduce.start(rank, &flat);
    bcast.start(rank, &flat);
  }
  ASSERT_TRUE(ranks.job.until([&] { return bcast.done(2); }));
  for (int i = 0; i < 100; ++i) ranks.job.step_all();
  EXPECT_FALSE(reduce.done(2)) << "rank 1 has not begun";
  reduce.start(1, &flat);
  bcast.start(1, &flat);
  reduce.finish("reduce");
  bcast.finish("bcast");
}

TEST(Events, ManyAtATime) {
  for (const char* driver : {"shm", "tcp"}) {
    Ranks ranks(job_of(driver, 4));
    std::vector<std::unique_ptr<Everywhere>> all;
    for (int i = 0; i < 3 * op_count; ++i) {
      Case one{static_cast<Op>(i % op_count), 4, static_cast<std::size_t>(1) << (i % 14), i % 4};
      one.seed = static_cast<std::uint32_t>(i);
      all.push_back(std::make_unique<Everywhere>(ranks, one));
    }
    for (int rank = 3; rank >= 0; --rank) {
      for (auto& one : all) one->start(rank);
    }
    for (auto it = all.rbegin(); it != all.rend(); ++it) (*it)->finish("many");
  }
}

TEST(Events, ACallReturnsThoughNobodyElseHasBegun) {
  Ranks ranks(job_of("shm", 4));
  for (int op = 0; op < op_count; ++op) {
    Everywhere all(ranks, {static_cast<Op>(op), 4, 2000});
    for (int rank = 0; rank < 4; ++rank) all.start(rank);  // one thread: a call that waited would never return
    all.finish("one after the other");
  }
}

TEST(Events, CallbacksAndQueuesTakeThemAsAnyRequest) {
  Ranks ranks(job_of("shm", 2));
  Everywhere first(ranks, {Op::allreduce, 2, 100}), second(ranks, {Op::bcast, 2, 100});
  int called = 0;
  canele_request_on_event(
      &first.request(0), CANELE_EVENT_FINALIZED,
      [](canele_request_t* request, unsigned events, void* argument) {
        EXPECT_EQ(events, static_cast<unsigned>(CANELE_EVENT_FINALIZED));
        EXPECT_EQ(status_of(*request).error, CANELE_OK);
        ++*static_cast<int*>(argument);
      },
      &called);
  canele_queue_t queue{};
  first.start_all();
  second.start_all();
  canele_request_on_queue(&second.request(0), &queue, &called);
  first.finish("first");
  second.finish("second");
  canele_request_t* taken = nullptr;
  void* argument = nullptr;
  ASSERT_TRUE(ranks.job.until(
      [&] { return called == 1 && canele_queue_poll(ranks.job.handle(0), &queue, &taken, &argument, 1) == 1; }));
  EXPECT_EQ(taken, &second.request(0));
  EXPECT_EQ(argument, &called);
}

/// Begins the next collective in the callback of the previous one.
struct Chain {
  Ranks* ranks;
  int rank, left = 200;
  std::uint64_t value = 1, sum = 0;
  canele_request_t request{};
  std::atomic<bool> over{false};

  static void next(canele_request_t*, unsigned, void* argument) {
    auto& chain = *static_cast<Chain*>(argument);
    if (chain.left-- == 0) {
      chain.over = true;
      return;
    }
    canele_operator_t op{};
    ASSERT_EQ(canele_operator_of(CANELE_SUM, CANELE_UINT64, &op), CANELE_OK);
    ASSERT_EQ(
        canele_iallreduce(chain.ranks->group(chain.rank), &chain.value, &chain.sum, 1, &op, nullptr, &chain.request),
        CANELE_OK);
    canele_request_on_event(&chain.request, CANELE_EVENT_FINALIZED, next, &chain);
  }
};

TEST(Events, ACallbackMayBeginTheNextOne) {
  Ranks ranks(job_of("shm", 3));
  std::vector<std::unique_ptr<Chain>> chains;
  for (int rank = 0; rank < 3; ++rank) {
    chains.push_back(std::make_unique<Chain>());
    chains.back()->ranks = &ranks;
    chains.back()->rank = rank;
    Chain::next(nullptr, 0, chains.back().get());
  }
  ASSERT_TRUE(ranks.job.until(
      [&] { return std::all_of(chains.begin(), chains.end(), [](const auto& one) { return one->over.load(); }); }));
  for (const auto& one : chains) EXPECT_EQ(one->sum, 3u);
}

TEST(Events, ThereAreAsManyMessagesAsTheAlgorithmHas) {
  struct Expected {
    Op op;
    int algorithm;
    std::uint64_t messages;
  };
  Ranks ranks(job_of("shm", 8));
  for (const Expected& one :
       {Expected{Op::barrier, CANELE_ALGORITHM_DISSEMINATION, 8 * 3}, Expected{Op::bcast, CANELE_ALGORITHM_BINOMIAL, 7},
        Expected{Op::bcast, CANELE_ALGORITHM_FLAT, 7}, Expected{Op::reduce, CANELE_ALGORITHM_BINOMIAL, 7},
        Expected{Op::allreduce, CANELE_ALGORITHM_RECURSIVE, 8 * 3},
        Expected{Op::allgather, CANELE_ALGORITHM_RING, 8 * 7}, Expected{Op::alltoall, CANELE_ALGORITHM_FLAT, 8 * 7},
        Expected{Op::alltoall, CANELE_ALGORITHM_BRUCK, 8 * 3}}) {
    for (const std::size_t length : {1u, 64u}) {
      const std::uint64_t before = messages_sent(ranks.job);
      Case what{one.op, 8, length};
      what.commutes = true;
      Everywhere all(ranks, what);
      const canele_collective_options_t options = options_of(one.algorithm);
      all.start_all(&options);
      all.finish("messages");
      EXPECT_EQ(messages_sent(ranks.job) - before, one.messages) << op_names[static_cast<int>(one.op)];
    }
  }
}

TEST(Events, WhatACallPostsDoesNotDependOnTheLength) {
  Ranks ranks(job_of("shm", 4));
  for (int op = 0; op < op_count; ++op) {
    if (static_cast<Op>(op) == Op::scan || static_cast<Op>(op) == Op::exscan) continue;  // chains have segments
    std::set<std::uint64_t> posted;
    for (const std::size_t length : {std::size_t{16}, std::size_t{1} << 16}) {
      Everywhere all(ranks, {static_cast<Op>(op), 4, length, 1});
      canele_collective_options_t options = options_of(CANELE_ALGORITHM_AUTO);
      options.segment = std::size_t{1} << 30;
      comm::Engine& engine = ranks.job.engine(0);
      const std::uint64_t before = engine.sessions.pending();
      all.start(0, &options);
      const std::uint64_t now = engine.sessions.pending() - before;
      posted.insert(now);
      EXPECT_LE(now, 8u) << op_names[op];
      for (int rank = 1; rank < 4; ++rank) all.start(rank, &options);
      all.finish("posted");
    }
  }
}

/// With plain receives it does: a caller that waits at once gets the message sooner that way.
TEST(Events, ACallCopiesNoLongMessageThatIsThere) {
  Ranks ranks(job_of("shm", 2));
  canele_collective_options_t options = options_of(CANELE_ALGORITHM_AUTO);
  options.segment = std::size_t{1} << 30;
  for (const Op op : {Op::bcast, Op::allgather, Op::alltoall}) {
    Everywhere all(ranks, {op, 2, std::size_t{1} << 20});
    all.start(0, &options);
    for (int i = 0; i < 100; ++i) ranks.job.step_all();
    comm::Engine& engine = ranks.job.engine(1);
    ASSERT_EQ(engine.large.active_copies, 0u);
    all.start(1, &options);
    EXPECT_GE(engine.large.active_copies, 1u) << op_names[static_cast<int>(op)] << ": the message was there";
    Everywhere next(ranks, {Op::bcast, 2, 100});
    next.start(1);
    EXPECT_GE(engine.large.active_copies, 1u) << op_names[static_cast<int>(op)] << ": nor does the next call copy it";
    EXPECT_NE(all.side(1).check(), "") << op_names[static_cast<int>(op)] << ": no rank has made progress yet";
    next.start(0);
    all.finish("copied later");
    next.finish("next");
  }
}

TEST(Events, AnAlltoallNeverExceedsItsInflightLimit) {
  constexpr int size = 6, window = 2;
  for (const char* driver : {"shm", "tcp"}) {
    Ranks ranks(job_of(driver, size, {"CANELE_EAGER_LIMIT=1k"}));
    canele_collective_options_t options = options_of(CANELE_ALGORITHM_FLAT);
    options.window = window;
    Everywhere all(ranks, {Op::alltoall, size, 4000});
    std::uint64_t most = 0;
    const auto look = [&] {
      for (int rank = 0; rank < size; ++rank) {
        const std::uint64_t sends = ranks.job.engine(rank).pending_sends;
        if (sends != 0) most = std::max(most, sends - 1);  // one request is the user's
      }
    };
    for (int rank = 0; rank < size; ++rank) {
      all.start(rank, &options);
      look();
    }
    ASSERT_TRUE(ranks.job.until([&] {
      look();
      return all.done();
    }));
    all.finish("window");
    EXPECT_EQ(most, static_cast<std::uint64_t>(window)) << driver;
  }
}

std::atomic<std::thread::id> combined_by;

void noting_sum(const void* in, void* inout, std::size_t count, void*) {
  combined_by = std::this_thread::get_id();
  combine_sum(in, inout, count, nullptr);
}

TEST(Events, ReductionsAreDoneWhereProgressIsMade) {
  for (const char* driver : {"shm", "tcp"}) {
    Ranks ranks(job_of(driver, 2));
    for (int rank = 0; rank < 2; ++rank) {
      ASSERT_EQ(canele_worker_bind(ranks.job.handle(rank), CANELE_INDEX_LOGICAL, nullptr, 0), CANELE_OK);
    }
    const canele_operator_t op{noting_sum, nullptr, sizeof(Affine), 1};
    std::vector<Affine> in(5000, {1, 2}), out(5000);
    canele_request_t root{}, other{};
    combined_by = std::this_thread::get_id();
    ASSERT_EQ(canele_ireduce(ranks.group(0), in.data(), out.data(), in.size(), &op, 0, nullptr, &root), CANELE_OK);
    ASSERT_EQ(canele_ireduce(ranks.group(1), in.data(), nullptr, in.size(), &op, 0, nullptr, &other), CANELE_OK);
    // A wait would make progress itself, should the worker lose its core.
    while (!comm::request_of(&root).finalized() || !comm::request_of(&other).finalized()) std::this_thread::yield();
    EXPECT_NE(combined_by.load(), std::this_thread::get_id()) << driver;
    EXPECT_EQ(out[4999], (Affine{2, 4}));
    for (int rank = 0; rank < 2; ++rank) canele_worker_stop(ranks.job.handle(rank));
  }
}

TEST(Events, RanksInThreadsOfTheirOwnWithAndWithoutWorkers) {
  constexpr int size = 4, rounds = 60;
  for (const char* driver : {"shm", "tcp"}) {
    for (const bool worker : {false, true}) {
      Ranks ranks(job_of(driver, size));
      std::atomic<int> wrong{0};
      std::vector<std::thread> threads;
      for (int rank = 0; rank < size; ++rank) {
        if (worker) canele_worker_bind(ranks.job.handle(rank), CANELE_INDEX_LOGICAL, nullptr, 0);
        threads.emplace_back([&, rank] {
          for (int round = 0; round < rounds; ++round) {
            std::vector<std::unique_ptr<Side>> sides;
            std::vector<canele_request_t> requests(3);
            for (int i = 0; i < 3; ++i) {
              Case one{static_cast<Op>((round + 4 * i) % op_count), size,
                       static_cast<std::size_t>((round * 37 + i * 500) % 3000), round % size};
              one.seed = static_cast<std::uint32_t>(round * 3 + i);
              sides.push_back(std::make_unique<Side>(one, rank));
              auto& request = requests[static_cast<std::size_t>(i)];
              wrong += sides.back()->start(ranks.group(rank), nullptr, &request) != CANELE_OK;
            }
            for (const std::size_t i : {2u, 0u, 1u}) {
              wrong += canele_wait(&requests[i], nullptr) != CANELE_OK;
              wrong += !sides[i]->check().empty();
            }
          }
          // Other ranks may still need this rank's engine.
          canele_request_t last{};
          canele_ibarrier(ranks.group(rank), nullptr, &last);
          canele_wait(&last, nullptr);
        });
      }
      for (std::thread& thread : threads) thread.join();
      EXPECT_EQ(wrong, 0) << driver << (worker ? " with workers" : "");
      for (int rank = 0; rank < size; ++rank) canele_worker_stop(ranks.job.handle(rank));
    }
  }
}

}  // namespace
}  // namespace canele::test
