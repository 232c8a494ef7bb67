// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives that the calling thread executes: their results, alone and beside others in progress; where blocking is
// not allowed; and how they fail.
//
// One thread for each rank. Every thread ends with a barrier that does not block, because others may still need its
// engine.
#include <atomic>
#include <functional>
#include <thread>

#include "comm/api/collective_call.hpp"
#include "ranks.hpp"

namespace canele::test {
namespace {

canele_collective_options_t blocking(int algorithm = 0) {
  canele_collective_options_t options = options_of(algorithm);
  options.blocking = 1;
  return options;
}

/// Runs work(rank) on a thread for each rank.
void on_all(Ranks& ranks, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    threads.emplace_back([&, rank] {
      work(rank);
      canele_request_t last{};
      canele_ibarrier(ranks.group(rank), nullptr, &last);
      canele_wait(&last, nullptr);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Returns "" or what is wrong with this rank's part of the collective.
std::string one_call(Ranks& ranks, int rank, const Case& what, const canele_collective_options_t& options) {
  Side side(what, rank);
  canele_request_t request{};
  if (side.start(ranks.group(rank), &options, &request) != CANELE_OK) return canele_error_detail();
  if (options.blocking != 0 && !comm::request_of(&request).finalized()) return "returned before its end";
  if (canele_wait(&request, nullptr) != CANELE_OK) return canele_error_detail();
  return side.check();
}

TEST(Blocking, GivesWhatTheOracleGivesWithEveryAlgorithm) {
  for (const int size : {2, 3, 8}) {
    Ranks ranks(job_of("shm", size));
    on_all(ranks, [&](int rank) {
      for (int op = 0; op < op_count; ++op) {
        for (int algorithm = 0; algorithm < comm::collectives::algorithms; ++algorithm) {
          const bool there =
              algorithm == 0 || comm::collectives::has(static_cast<comm::collectives::Operation>(op),
                                                       static_cast<comm::collectives::Algorithm>(algorithm));
          for (const std::size_t length : {0, 1, 1000, 9000}) {
            if (!there) continue;
            canele_collective_options_t options = blocking(algorithm);
            options.window = algorithm % 3;
            const Case one{static_cast<Op>(op), size, length, size - 1, length == 1000, false, length == 9000};
            EXPECT_EQ(one_call(ranks, rank, one, options), "") << op_names[op] << " by algorithm " << algorithm;
          }
        }
      }
    });
  }
}

TEST(Blocking, RanksMayDifferAndOthersMayBeUnderWay) {
  constexpr int size = 4;
  Ranks ranks(job_of("shm", size));
  on_all(ranks, [&](int rank) {
    for (int round = 0; round < 200; ++round) {
      const Case longer{Op::allreduce, size, 5000, 0, false, false, true};
      Side beside(longer, rank);
      canele_request_t request{};
      EXPECT_EQ(beside.start(ranks.group(rank), nullptr, &request), CANELE_OK);
      const Case one{static_cast<Op>(round % op_count), size, static_cast<std::size_t>(round), round % size};
      const bool blocks = (round + rank) % 3 != 0;
      EXPECT_EQ(one_call(ranks, rank, one, blocks ? blocking() : options_of(0)), "") << "round " << round;
      EXPECT_EQ(canele_wait(&request, nullptr), CANELE_OK);
      EXPECT_EQ(beside.check(), "");
    }
  });
}

/// Returns the bytes that the kernel has copied, of a collective with a long message, where a copy by the kernel is
/// said to be slow.
std::uint64_t copied_by_the_kernel(Op op, bool blocks) {
  constexpr int size = 2;
  constexpr std::size_t length = (1 << 20) / Side::element;
  Ranks ranks(job_of("shm", size, {"CANELE_EXPERT_SHM_CMA_MIN=100000"}));
  on_all(ranks, [&](int rank) {
    EXPECT_EQ(one_call(ranks, rank, {op, size, length}, blocks ? blocking() : options_of(0)), "");
  });
  std::uint64_t sum = 0;
  for (const auto counter : {comm::Counter::rma_get_bytes, comm::Counter::rma_put_bytes}) {
    for (int rank = 0; rank < size; ++rank) sum += ranks.job.engine(rank).counters.read(counter);
  }
  return sum;
}

TEST(Blocking, SendsLongOperandsThroughBuffersWhereThatIsQuicker) {
  EXPECT_EQ(copied_by_the_kernel(Op::reduce, true), 0u);
  EXPECT_NE(copied_by_the_kernel(Op::reduce, false), 0u) << "one end may compute";
  EXPECT_NE(copied_by_the_kernel(Op::bcast, true), 0u) << "both ends share the copy";
}

TEST(Blocking, SendsWhatIsSomewhatTooLongForAPacketWithoutAsking) {
  constexpr int size = 2;
  Ranks ranks(job_of("shm", size));
  on_all(ranks, [&](int rank) {
    for (const Op op : {Op::bcast, Op::gather, Op::scatter, Op::allreduce, Op::allgather, Op::scan}) {
      const std::size_t bytes = op == Op::gather ? 64 << 10 : 24 << 10;
      const Case longer{op, size, bytes / Side::element};
      EXPECT_EQ(one_call(ranks, rank, longer, blocking()), "");
      EXPECT_EQ(one_call(ranks, rank, {Op::barrier, size}, blocking()), "") << "they know what they may send";
      const auto asked = [&] { return ranks.job.engine(rank).counters.read(comm::Counter::rendezvous_sent); };
      const std::uint64_t before = asked();
      EXPECT_EQ(one_call(ranks, rank, longer, blocking()), "");
      EXPECT_EQ(asked(), before) << op_names[static_cast<int>(op)];
    }
  });
}

/// Makes the engines behave as on an oversubscribed host: they yield to each other, and lay long messages down.
void lay_down(Ranks& ranks) {
  for (int rank = 0; rank < ranks.size(); ++rank) ranks.job.engine(rank).oversubscribed = true;
}

std::uint64_t sum_of(Ranks& ranks, comm::Counter counter) {
  std::uint64_t sum = 0;
  for (int rank = 0; rank < ranks.size(); ++rank) sum += ranks.job.engine(rank).counters.read(counter);
  return sum;
}

TEST(Blocking, LaysDownLongMessagesWhereRanksShareCores) {
  constexpr int size = 4;
  Ranks ranks(job_of("shm", size, {"CANELE_EXPERT_SHM_BROADCAST_SEGMENT=on"}));
  lay_down(ranks);
  on_all(ranks, [&](int rank) {
    for (int round = 0; round < 3; ++round) {
      for (int op = 0; op < op_count; ++op) {
        for (const std::size_t bytes : {16'400, 66'000, 300'000, 1'200'000}) {
          for (const int algorithm : {0, static_cast<int>(CANELE_ALGORITHM_FLAT)}) {
            const auto operation = static_cast<comm::collectives::Operation>(op);
            if (algorithm != 0 && !comm::collectives::has(operation, comm::collectives::Algorithm::flat)) continue;
            const Case one{static_cast<Op>(op), size, bytes / Side::element, size - 1, false, round == 1, round == 2};
            EXPECT_EQ(one_call(ranks, rank, one, blocking(algorithm)), "") << op_names[op] << ", " << bytes;
          }
        }
      }
    }
  });
  EXPECT_NE(sum_of(ranks, comm::Counter::rma_get_bytes), 0u);
}

/// The sender may use its memory and the label again although no other rank has called yet.
TEST(Blocking, WhoLaysAMessageDownGoesOn) {
  constexpr int size = 3;
  constexpr std::size_t length = 300'000 / Side::element;
  Ranks ranks(job_of("shm", size, {"CANELE_EXPERT_SHM_BROADCAST_SEGMENT=on"}));
  lay_down(ranks);
  std::atomic<bool> gone{false};
  on_all(ranks, [&](int rank) {
    canele_group_t* group = nullptr;
    EXPECT_EQ(canele_group_create(ranks.job.handle(rank), "short", nullptr, 0, &group), CANELE_OK);
    EXPECT_EQ(one_call(ranks, rank, {Op::barrier, size}, blocking()), "") << "connected from now on";
    while (rank != 0 && !gone.load()) std::this_thread::yield();
    {
      Side side({Op::bcast, size, length}, rank);
      const canele_collective_options_t options = blocking(CANELE_ALGORITHM_FLAT);
      canele_request_t request{};
      EXPECT_EQ(side.start(group, &options, &request), CANELE_OK);
      EXPECT_EQ(side.check(), "");
    }
    EXPECT_EQ(canele_group_destroy(group), CANELE_OK) << canele_error_detail();
    gone.store(true);
  });
  EXPECT_TRUE(ranks.job.until([&] { return ranks.job.engine(0).large.buffered_count.load() == 0; }));
}

/// The middle rank finds the connection to a late rank full after a few messages. Sometimes another obstacle makes it
/// announce its message, which the late rank must then ask for.
TEST(Blocking, WithinAChainGoesOnWhereASendCannotLeave) {
  constexpr int size = 3, calls = 40;
  Ranks ranks(job_of("shm", size));
  const auto announced = [&] { return ranks.job.engine(1).counters.read(comm::Counter::rendezvous_sent) != 0; };
  std::atomic<int> done{0};
  on_all(ranks, [&](int rank) {
    EXPECT_EQ(one_call(ranks, rank, {Op::barrier, size}, blocking()), "") << "connected from now on";
    while (rank == size - 1 && done.load() < 3 && !announced()) std::this_thread::yield();
    for (int call = 0; call < calls; ++call) {
      const Op op = call % 2 == 0 ? Op::bcast : Op::scan;
      EXPECT_EQ(one_call(ranks, rank, {op, size, 12'000 / Side::element}, blocking(CANELE_ALGORITHM_CHAIN)), "");
      if (rank == 1) done.fetch_add(1);
    }
  });
}

/// Returns the number of messages that the late root of some gathers has copied before their receives.
std::uint64_t copied_by_a_late_root() {
  constexpr int size = 3, calls = 3;
  Ranks ranks(job_of("shm", size));
  const Case gather{Op::gather, size, 1};
  std::atomic<int> met{0}, ahead{0};
  on_all(ranks, [&](int rank) {
    EXPECT_EQ(one_call(ranks, rank, {Op::barrier, size}, blocking()), "") << "connected from now on";
    met.fetch_add(1);
    while (met.load() < size || (rank == 0 && ahead.load() < size - 1)) std::this_thread::yield();
    for (int call = 0; call < calls; ++call)
      EXPECT_EQ(one_call(ranks, rank, gather, blocking(CANELE_ALGORITHM_FLAT)), "");
    ahead.fetch_add(1);
  });
  return ranks.job.engine(0).counters.read(comm::Counter::unexpected_messages);
}

/// An engine may poll between two calls where threads outnumber the cores, so that is tried again.
TEST(Blocking, LeavesMessagesOfLaterOnesWhereTheyAre) {
  std::uint64_t copied = 1;
  for (int i = 0; i < 20 && copied != 0; ++i) copied = copied_by_a_late_root();
  EXPECT_EQ(copied, 0u);
}

TEST(Blocking, OfManyMessagesIsCarriedOutByTheirEvents) {
  constexpr int size = 2;
  Ranks ranks(job_of("shm", size));
  on_all(ranks, [&](int rank) {
    canele_collective_options_t options = blocking();
    options.segment = 1024;
    const Case one{Op::bcast, size, 100'000 / Side::element};
    EXPECT_EQ(one_call(ranks, rank, one, options), "");
  });
}

TEST(Blocking, WithoutARequestReturnsHowItHasEnded) {
  constexpr int size = 3;
  Ranks ranks(job_of("shm", size));
  on_all(ranks, [&](int rank) {
    const canele_collective_options_t plain = blocking();
    canele_collective_options_t segments = blocking();
    segments.segment = 1024;  // of many messages
    for (int op = 0; op < op_count; ++op) {
      const bool is_long = static_cast<Op>(op) == Op::bcast;
      Side side({static_cast<Op>(op), size, is_long ? std::size_t{100'000} : std::size_t{1}}, rank);
      EXPECT_EQ(side.start(ranks.group(rank), is_long ? &segments : &plain, nullptr), CANELE_OK) << op_names[op];
      EXPECT_EQ(side.check(), "");
    }
    EXPECT_EQ(canele_ibarrier(ranks.group(rank), nullptr, nullptr), CANELE_EINVAL);
    const canele_collective_options_t goes_on = options_of(0);
    EXPECT_EQ(canele_ibarrier(ranks.group(rank), &goes_on, nullptr), CANELE_EINVAL);
  });
}

/// A repeated call uses a cached schedule: every difference to the previous call must be noticed.
TEST(Blocking, MadeAgainGivesTheSameAndWithOtherArgumentsWhatTheyMean) {
  constexpr int size = 3;
  Ranks ranks(job_of("shm", size));
  on_all(ranks, [&](int rank) {
    std::uint32_t seed = 0;
    for (const Op op : {Op::bcast, Op::reduce, Op::gather, Op::scatter, Op::scan, Op::allreduce}) {
      for (int differs = 0; differs < 64; ++differs) {
        Case one{op, size, (differs & 1) != 0 ? 7u : 5u, differs & 2};
        one.in_place = (differs & 4) != 0;
        one.commutes = (differs & 8) != 0;
        one.irregular = (differs & 16) != 0;
        canele_collective_options_t options = blocking();
        options.priority = differs % 3;
        if ((differs & 32) != 0 && op != Op::scan && op != Op::allreduce) options.algorithm = CANELE_ALGORITHM_FLAT;
        for (int time = 0; time < 1 + differs % 3; ++time) {
          one.seed = ++seed;
          Side side(one, rank);
          ASSERT_EQ(side.start(ranks.group(rank), &options, nullptr), CANELE_OK) << canele_error_detail();
          ASSERT_EQ(side.check(), "") << differs;
        }
      }
    }
  });
}

TEST(Blocking, MadeAgainWithWrongArgumentsIsRejectedAllTheSame) {
  Ranks ranks(job_of("shm", 1));
  canele_group_t* const group = ranks.group(0);
  const canele_collective_options_t options = blocking();
  std::int64_t in = 1, out = 0;
  const canele_parts_t one{8, nullptr, nullptr}, two{16, nullptr, nullptr};
  canele_operator_t sum{}, none{};
  ASSERT_EQ(canele_operator_of(CANELE_SUM, CANELE_INT64, &sum), CANELE_OK);
  ASSERT_EQ(canele_ibcast(group, &in, 8, 0, &options, nullptr), CANELE_OK);
  EXPECT_EQ(canele_ibcast(group, nullptr, 8, 0, &options, nullptr), CANELE_EINVAL);
  EXPECT_EQ(canele_ibcast(group, &in, 8, 1, &options, nullptr), CANELE_ERANK);
  EXPECT_EQ(canele_ibcast(nullptr, &in, 8, 0, &options, nullptr), CANELE_EINVAL);
  EXPECT_EQ(canele_ibcast(group, &in, 8, 0, nullptr, nullptr), CANELE_EINVAL);
  ASSERT_EQ(canele_igather(group, &in, 8, &out, &one, 0, &options, nullptr), CANELE_OK);
  EXPECT_EQ(canele_igather(group, &in, 8, nullptr, &one, 0, &options, nullptr), CANELE_EINVAL);
  EXPECT_EQ(canele_igather(group, &in, 8, &out, &two, 0, &options, nullptr), CANELE_EINVAL);
  EXPECT_EQ(canele_igather(group, &in, 8, &out, nullptr, 0, &options, nullptr), CANELE_EINVAL);
  ASSERT_EQ(canele_iscatter(group, &in, &one, &out, 8, 0, &options, nullptr), CANELE_OK);
  EXPECT_EQ(canele_iscatter(group, nullptr, &one, &out, 8, 0, &options, nullptr), CANELE_EINVAL);
  EXPECT_EQ(canele_iscatter(group, &in, &two, &out, 8, 0, &options, nullptr), CANELE_EINVAL);
  ASSERT_EQ(canele_ireduce(group, &in, &out, 1, &sum, 0, &options, nullptr), CANELE_OK);
  EXPECT_EQ(canele_ireduce(group, &in, nullptr, 1, &sum, 0, &options, nullptr), CANELE_EINVAL);
  EXPECT_EQ(canele_ireduce(group, &in, &out, 1, &none, 0, &options, nullptr), CANELE_EINVAL);
  EXPECT_EQ(canele_ireduce(group, &in, &out, 1, nullptr, 0, &options, nullptr), CANELE_EINVAL);
  ASSERT_EQ(canele_iscan(group, &in, &out, 1, &sum, &options, nullptr), CANELE_OK);
  EXPECT_EQ(canele_iscan(group, nullptr, &out, 1, &sum, &options, nullptr), CANELE_EINVAL);
  EXPECT_EQ(canele_iscan(group, &in, &out, ~std::size_t{0} / 4, &sum, &options, nullptr), CANELE_EINVAL);
}

TEST(Blocking, IsRejectedInACallback) {
  Ranks ranks(job_of("shm", 2));
  Everywhere all(ranks, {Op::barrier, 2});
  struct Inside {
    canele_group_t* group;
    canele_request_t request;
    int code;
    std::string detail;
  } inside{ranks.group(0), {}, CANELE_OK, ""};
  all.start_all();
  canele_request_on_event(
      &all.request(0), CANELE_EVENT_FINALIZED,
      [](canele_request_t*, unsigned, void* argument) {
        auto& in = *static_cast<Inside*>(argument);
        const canele_collective_options_t options = blocking();
        in.code = canele_ibarrier(in.group, &options, &in.request);
        in.detail = canele_error_detail();
      },
      &inside);
  all.finish("barrier");
  ASSERT_TRUE(ranks.job.until([&] { return inside.code != CANELE_OK; }));
  EXPECT_EQ(inside.code, CANELE_EDEADLK);
  EXPECT_NE(inside.detail.find("canele_ibarrier: a blocking call"), std::string::npos) << inside.detail;
}

TEST(Blocking, FailsAndTheNextCallSucceeds) {
  constexpr int size = 3, wrong_one = 2;
  Ranks ranks(job_of("tcp", size, {"CANELE_VERBOSE=0"}));
  std::atomic<int> ended{0};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < wrong_one; ++rank) {
    threads.emplace_back([&, rank] {
      const canele_collective_options_t options = blocking(CANELE_ALGORITHM_FLAT);
      std::uint64_t word = 0;
      canele_request_t request{}, later{};
      canele_status_t status{};
      if (rank == 0) {
        EXPECT_EQ(canele_ibcast(ranks.group(rank), &word, sizeof word, wrong_one, &options, nullptr), CANELE_EPROTOCOL);
        EXPECT_NE(std::string(canele_error_detail()).find("a message of rank 2 is not as long"), std::string::npos)
            << canele_error_detail();
      } else {
        EXPECT_EQ(canele_ibcast(ranks.group(rank), &word, sizeof word, wrong_one, &options, &request), CANELE_OK);
        canele_request_status(&request, &status);
        EXPECT_EQ(status.error, CANELE_EPROTOCOL);
        EXPECT_EQ(status.source, wrong_one);
      }
      const canele_collective_options_t plain = blocking();
      EXPECT_EQ(canele_ibarrier(ranks.group(rank), &plain, &later), CANELE_OK);
      canele_request_status(&later, &status);
      EXPECT_EQ(status.error, CANELE_OK);
      ++ended;
    });
  }
  // Rank 0 is sent too little; rank 1 is sent nothing, and is told so.
  canele_request_t wrong{};
  std::uint32_t half = 0;
  EXPECT_EQ(canele_isend(comm::api::public_of(comm::api::group_of(ranks.group(wrong_one)).session), 0, 0, &half,
                         sizeof half, &wrong),
            CANELE_OK);
  comm::api::group_of(ranks.group(wrong_one)).started = 1;  // as if the message were its part of the broadcast
  canele_request_t later{};
  EXPECT_EQ(canele_ibarrier(ranks.group(wrong_one), nullptr, &later), CANELE_OK);
  while (ended < wrong_one) ranks.job.engine(wrong_one).step();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(canele_wait(&wrong, nullptr), CANELE_OK);
  EXPECT_TRUE(ranks.job.finish(later));
}

/// Another rank found no memory for a message. This call is not refused for that reason: its request ends.
TEST(Blocking, FailsForWantOfMemoryElsewhere) {
  Ranks ranks(job_of("shm", 2, {"CANELE_VERBOSE=0"}));
  for (const std::uint64_t number : {0u, 1u}) {
    ASSERT_TRUE(comm::api::group_of(ranks.group(0)).note(number, {CANELE_ENOMEM, 1}));
  }
  const canele_collective_options_t options = blocking();
  canele_request_t request{};
  EXPECT_EQ(canele_ibarrier(ranks.group(0), &options, &request), CANELE_OK) << canele_error_detail();
  const canele_status_t status = status_of(request);
  EXPECT_EQ(status.error, CANELE_ENOMEM);
  EXPECT_EQ(status.source, 1);
  EXPECT_EQ(canele_ibarrier(ranks.group(0), &options, nullptr), CANELE_ENOMEM);
  EXPECT_EQ(std::string(canele_error_detail()).find("scratch"), std::string::npos) << canele_error_detail();
}

/// All sends beyond the limit end with the collective.
TEST(Blocking, SendsNoMoreOnceItHasFailed) {
  constexpr int size = 5, wrong_one = 4;
  constexpr std::size_t part = 200'000;  // each send waits for its receiver, which never calls
  Ranks ranks(job_of("tcp", size, {"CANELE_VERBOSE=0"}));
  std::atomic<bool> ended{false};
  std::thread caller([&] {
    canele_collective_options_t options = blocking(CANELE_ALGORITHM_FLAT);
    options.window = 1;
    std::vector<std::byte> in(size * part), out(size * part);
    const canele_parts_t parts{part, nullptr, nullptr};
    EXPECT_EQ(canele_ialltoall(ranks.group(0), in.data(), &parts, out.data(), &parts, &options, nullptr),
              CANELE_EPROTOCOL);
    ended = true;
  });
  canele_request_t wrong{};
  std::uint32_t word = 0;
  EXPECT_EQ(canele_isend(comm::api::public_of(comm::api::group_of(ranks.group(wrong_one)).session), 0, 0, &word,
                         sizeof word, &wrong),
            CANELE_OK);
  while (!ended) {
    for (int rank = 1; rank < size; ++rank) ranks.job.engine(rank).step();
  }
  caller.join();
  EXPECT_EQ(canele_wait(&wrong, nullptr), CANELE_OK);
}

}  // namespace
}  // namespace canele::test
