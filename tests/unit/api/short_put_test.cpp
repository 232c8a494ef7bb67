// SPDX-License-Identifier: BSD-3-Clause
//
// Short puts without a completion: they leave within their post, where nothing of their lane stands before them.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "unit/api/one_sided_job.hpp"

namespace canele::test::one_sided_access {
namespace {

using comm::Counter;

/// On memory of either kind, over each driver.
class OneSidedShortPut : public OneSidedJob {};

TEST_P(OneSidedShortPut, EveryLengthArrives) {
  constexpr std::size_t lengths = 300, slot = 512;
  canele_lane_t* lane = nullptr;
  ASSERT_EQ(canele_lane_open(job_.handle(0), &lane), CANELE_OK);
  canele_access_options_t in_lane = options();
  in_lane.lane = lane;
  std::vector<std::vector<std::uint8_t>> kept;
  for (std::size_t length = 0; length < lengths; ++length) {
    kept.push_back(pattern(length, static_cast<unsigned>(length)));
    kept.back().reserve(1);  // a base that is not null, also for no bytes
    ASSERT_EQ(put(length * slot, kept.back(), nullptr, length % 2 == 0 ? nullptr : &in_lane), CANELE_OK);
    if (length % 16 == 0) job_.step_all();
  }
  EXPECT_EQ(flush(), CANELE_OK);
  canele_request_t request{};
  ASSERT_EQ(canele_flush(job_.handle(0), target(), &in_lane, &request), CANELE_OK);
  ASSERT_TRUE(job_.finish(request));
  for (std::size_t length = 0; length < lengths; ++length) {
    const unsigned char* const there = base() + length * slot;
    EXPECT_TRUE(std::equal(kept[length].begin(), kept[length].end(), there)) << length;
    EXPECT_EQ(there[length], mapped() ? 0 : guard_byte) << "behind " << length << " bytes";
  }
  EXPECT_EQ(canele_lane_close(lane), CANELE_OK) << canele_error_detail();
}

/// More puts than the driver takes: some leave at once, some wait, and all are executed in their order.
TEST_P(OneSidedShortPut, AFloodIsOrdered) {
  constexpr std::uint64_t puts = 5000;
  std::vector<std::uint64_t> numbers(puts);
  std::uint64_t last = 0;
  for (std::uint64_t i = 0; i < puts; ++i) {
    numbers[i] = i + 1;
    const canele_data_t data = canele_data_contiguous(&numbers[i], sizeof numbers[i]);
    ASSERT_EQ(canele_put(key_, 0, &data, nullptr, nullptr), CANELE_OK) << canele_error_detail();
    if (i % 1000 < 990) continue;
    job_.engine(target()).step();
    std::uint64_t now = 0;
    std::copy_n(base(), sizeof now, reinterpret_cast<unsigned char*>(&now));
    if (now <= puts) {  // else no put was executed yet
      EXPECT_GE(now, last);
      last = now;
    }
  }
  EXPECT_EQ(flush(), CANELE_OK);
  EXPECT_TRUE(std::equal(base(), base() + sizeof puts, reinterpret_cast<const unsigned char*>(&puts)));
}

TEST_P(OneSidedShortPut, DoesNotOvertakeALargePut) {
  constexpr std::size_t large = 300'000;
  const std::vector<std::uint8_t> twos(large, 2), threes(8, 3);
  ASSERT_EQ(put(0, threes, nullptr), CANELE_OK);
  EXPECT_EQ(flush(), CANELE_OK);
  for (int round = 0; round < 10; ++round) {
    ASSERT_EQ(put(0, twos, nullptr), CANELE_OK);
    ASSERT_EQ(put(0, threes, nullptr), CANELE_OK);
    ASSERT_EQ(put(large - 8, threes, nullptr), CANELE_OK);
    EXPECT_EQ(flush(), CANELE_OK);
    EXPECT_EQ(std::count(base(), base() + large, 2), std::ptrdiff_t{large - 16});
    EXPECT_EQ(std::count(base(), base() + large, 3), std::ptrdiff_t{16});
  }
}

/// The target still reads the memory for the get when it could execute the put.
TEST_P(OneSidedShortPut, DoesNotOvertakeAGet) {
  constexpr std::size_t large = 300'000;
  const std::vector<std::uint8_t> threes(8, 3);
  std::vector<std::uint8_t> into(large);
  ASSERT_EQ(put(0, threes, nullptr), CANELE_OK);
  for (int round = 0; round < 10; ++round) {
    EXPECT_EQ(flush(), CANELE_OK);
    std::fill_n(base(), large, static_cast<unsigned char>(1));
    ASSERT_EQ(get(0, into, nullptr), CANELE_OK);
    ASSERT_EQ(put(0, threes, nullptr), CANELE_OK);
    ASSERT_EQ(put(large - 8, threes, nullptr), CANELE_OK);
    EXPECT_EQ(flush(), CANELE_OK);
    EXPECT_EQ(std::count(into.begin(), into.end(), 1), std::ptrdiff_t{large});
    EXPECT_EQ(std::count(base(), base() + large, 3), std::ptrdiff_t{16});
  }
}

/// Some puts of a thread find the lock taken, and go the normal way: they keep their order all the same.
TEST_P(OneSidedShortPut, ThreadsPutAtOnce) {
  constexpr std::size_t threads = 4;
  constexpr std::uint64_t puts = 2000;
  const std::vector<std::uint8_t> zero(threads * sizeof puts, 0);
  ASSERT_EQ(put(0, zero, nullptr), CANELE_OK);
  EXPECT_EQ(flush(), CANELE_OK);
  std::vector<std::vector<std::uint64_t>> numbers(threads, std::vector<std::uint64_t>(puts));
  std::atomic<std::size_t> running{threads};
  std::vector<std::thread> all;
  for (std::size_t thread = 0; thread < threads; ++thread) {
    all.emplace_back([&, thread] {
      std::uint64_t next = 0;
      for (std::uint64_t& number : numbers[thread]) {
        number = ++next;
        const canele_data_t data = canele_data_contiguous(&number, sizeof number);
        EXPECT_EQ(canele_put(key_, thread * sizeof number, &data, nullptr, nullptr), CANELE_OK);
      }
      running.fetch_sub(1);
    });
  }
  while (running != 0) job_.engine(target()).step();
  for (std::thread& thread : all) thread.join();
  EXPECT_EQ(flush(), CANELE_OK);
  for (std::size_t thread = 0; thread < threads; ++thread) {
    std::uint64_t last = 0;
    std::copy_n(base() + thread * sizeof last, sizeof last, reinterpret_cast<unsigned char*>(&last));
    EXPECT_EQ(last, puts) << "thread " << thread;
  }
}

/// An access to mapped memory follows the short puts of its lane that go by packets.
TEST_P(OneSidedShortPut, IsNotOvertakenInMappedMemory) {
  if (!mapped()) GTEST_SKIP() << "for mapped memory";
  std::uint64_t other = 0, flag = 0;
  canele_memory_t* memory = nullptr;
  canele_key_t* key = nullptr;
  unsigned char packed[CANELE_KEY_SIZE];
  ASSERT_EQ(canele_memory_register(job_.handle(target()), &other, sizeof other, nullptr, &memory), CANELE_OK);
  ASSERT_EQ(canele_memory_key(memory, packed), CANELE_OK);
  ASSERT_EQ(canele_key_open(job_.handle(0), packed, &key), CANELE_OK);
  const canele_data_t data = canele_data_contiguous(&flag, sizeof flag);
  for (std::uint64_t round = 1; round < 20; ++round) {
    flag = round;
    for (int i = 0; i < 3; ++i) ASSERT_EQ(canele_put(key, 0, &data, nullptr, nullptr), CANELE_OK);
    ASSERT_EQ(canele_put(key_, 8, &data, nullptr, nullptr), CANELE_OK);
    ASSERT_TRUE(job_.until([&] { return base()[8] == round; }));
    EXPECT_EQ(other, round);
    EXPECT_EQ(flush(), CANELE_OK);
  }
  EXPECT_EQ(canele_key_close(key), CANELE_OK);
  EXPECT_EQ(canele_memory_free(memory), CANELE_OK);
}

TEST_P(OneSidedShortPut, AFlushTellsThatTheMemoryIsRevoked) {
  if (mapped()) GTEST_SKIP() << "for registered memory";
  const std::vector<std::uint8_t> before(8, 1), after(8, 2);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(put(0, before, nullptr), CANELE_OK);
  EXPECT_EQ(flush(), CANELE_OK);
  EXPECT_EQ(canele_memory_free(registered_), CANELE_OK);
  registered_ = nullptr;
  for (int i = 0; i < 3; ++i) ASSERT_EQ(put(0, after, nullptr), CANELE_OK);
  EXPECT_EQ(flush(), CANELE_EREVOKED);
  EXPECT_EQ(flush(), CANELE_OK) << "an error is told once";
  EXPECT_TRUE(std::equal(before.begin(), before.end(), base()));
}

INSTANTIATE_TEST_SUITE_P(Ways, OneSidedShortPut, every_way, name_of_way);

/// Over shared memory, on registered memory.
class OneSidedShortPutByShm : public OneSidedJob {
 protected:
  std::uint64_t of_origin(Counter counter) { return job_.engine(0).counters.read(counter); }
};

/// Such a put needs no submission, and so no request.
TEST_P(OneSidedShortPutByShm, LeavesWithinItsPost) {
  const std::vector<std::uint8_t> bytes(8, 1);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(put(0, bytes, nullptr), CANELE_OK);  // the first ones connect, and attach
  EXPECT_EQ(flush(), CANELE_OK);
  ASSERT_EQ(put(0, bytes, nullptr), CANELE_OK);  // the first put after a flush may be a copy by this process
  const std::uint64_t sent = of_origin(Counter::accesses_sent), submitted = of_origin(Counter::lock_taken);
  for (int i = 0; i < 32; ++i) ASSERT_EQ(put(0, bytes, nullptr), CANELE_OK);
  EXPECT_EQ(of_origin(Counter::accesses_sent), sent + 32);
  EXPECT_EQ(of_origin(Counter::lock_taken), submitted);
  EXPECT_EQ(flush(), CANELE_OK);
  EXPECT_EQ(job_.engine(1).counters.read(Counter::accesses_executed), of_origin(Counter::accesses_sent));
}

/// The key and its range are checked before anything leaves.
TEST_P(OneSidedShortPutByShm, IsCheckedAtTheOrigin) {
  const std::vector<std::uint8_t> bytes(8, 1);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(put(0, bytes, nullptr), CANELE_OK);
  const std::uint64_t sent = of_origin(Counter::accesses_sent);
  for (const std::uint64_t offset : {std::uint64_t{window}, std::uint64_t{window - 7}, ~std::uint64_t{0}})
    EXPECT_EQ(put(offset, bytes, nullptr), CANELE_EACCESS) << offset;
  EXPECT_EQ(canele_put(nullptr, 0, nullptr, nullptr, nullptr), CANELE_EINVAL);
  canele_access_options_t wrong = options();
  wrong.struct_size = 1;
  EXPECT_EQ(put(0, bytes, nullptr, &wrong), CANELE_EINVAL);
  EXPECT_EQ(of_origin(Counter::accesses_sent), sent);
  EXPECT_EQ(flush(), CANELE_OK);
}

/// The answer to a flush tells of the puts before it only: the lane still counts those behind it.
TEST_P(OneSidedShortPutByShm, ALaneCountsThoseBehindAFlush) {
  canele_lane_t* lane = nullptr;
  ASSERT_EQ(canele_lane_open(job_.handle(0), &lane), CANELE_OK);
  canele_access_options_t in_lane = options();
  in_lane.lane = lane;
  const std::vector<std::uint8_t> bytes(8, 1);
  for (int round = 0; round < 10; ++round) {
    canele_request_t first{}, second{};
    for (int i = 0; i < 3; ++i) ASSERT_EQ(put(0, bytes, nullptr, &in_lane), CANELE_OK);
    ASSERT_EQ(canele_flush(job_.handle(0), target(), &in_lane, &first), CANELE_OK);
    if (round != 0) {  // connected: the target answers, and then the next puts leave
      for (int i = 0; i < 3; ++i) job_.engine(1).step();
    }
    for (int i = 0; i < 3; ++i) ASSERT_EQ(put(0, bytes, nullptr, &in_lane), CANELE_OK);
    if (round != 0) {
      for (int i = 0; i < 3; ++i) job_.engine(0).step();
      EXPECT_TRUE(comm::request_of(&first).finalized()) << round;
      EXPECT_EQ(canele_lane_try_flush(lane), 0) << round;
    }
    ASSERT_EQ(canele_flush(job_.handle(0), target(), &in_lane, &second), CANELE_OK);
    ASSERT_TRUE(job_.finish(first) && job_.finish(second));
    EXPECT_EQ(canele_lane_try_flush(lane), 1) << round;
  }
  EXPECT_EQ(canele_lane_close(lane), CANELE_OK) << canele_error_detail();
}

/// Each put notifies by its offset and length, and finds its data there.
TEST_P(OneSidedShortPut, NotificationsOfEveryLengthArrive) {
  constexpr std::size_t lengths = 300, distance = 512;
  canele_queue_t queue{};
  canele_access_options_t notify = notifying({CANELE_COMPLETE_QUEUE, 0, &queue, nullptr, nullptr});
  std::vector<std::vector<std::uint8_t>> kept;
  std::size_t taken = 0;
  const auto take = [&] {
    canele_entry_t entry{};
    while (canele_queue_take(job_.handle(target()), &queue, &entry, 1) == 1) {
      ASSERT_LT(taken, kept.size());
      EXPECT_EQ(entry.immediate, taken << 40 | taken);
      EXPECT_EQ(entry.tag, taken * distance);
      EXPECT_EQ(entry.length, taken);
      EXPECT_TRUE(std::equal(kept[taken].begin(), kept[taken].end(), base() + taken * distance)) << taken;
      ++taken;
    }
  };
  for (std::size_t length = 0; length < lengths; ++length) {
    kept.push_back(pattern(length, static_cast<unsigned>(length)));
    kept.back().reserve(1);
    notify.immediate = length << 40 | length;
    ASSERT_EQ(put(length * distance, kept.back(), nullptr, &notify), CANELE_OK) << canele_error_detail();
    if (length % 16 != 0) continue;
    job_.step_all();
    take();
  }
  EXPECT_EQ(flush(), CANELE_OK);
  ASSERT_TRUE(job_.until([&] {
    take();
    return taken == lengths;
  }));
  EXPECT_EQ(canele_notification_close(job_.handle(target()), notify.slot), CANELE_OK);
}

/// A program that flushes each put sends no packet for the flush: the put asks for its acknowledgement itself.
TEST_P(OneSidedShortPut, AFlushAfterEachPutNeedsNoPacket) {
  if (mapped() || target() == 0 || std::string(GetParam().driver) != "tcp")
    GTEST_SKIP() << "other puts leave otherwise";
  constexpr std::uint64_t rounds = 50;
  const auto packets = [&] { return job_.engine(0).peers[1]->counters.read(comm::Counter::packets_sent); };
  std::vector<std::uint8_t> bytes(8);
  const auto put_and_flush = [&](std::uint64_t times) {
    for (std::uint64_t i = 0; i < times; ++i) {
      bytes.assign(8, static_cast<std::uint8_t>(i));
      ASSERT_EQ(put(0, bytes, nullptr), CANELE_OK);
      EXPECT_EQ(flush(), CANELE_OK);
      EXPECT_EQ(base()[7], static_cast<std::uint8_t>(i));
    }
  };
  put_and_flush(2);
  const std::uint64_t before = packets();
  put_and_flush(rounds);
  EXPECT_EQ(packets() - before, rounds);
  for (int window = 0; window < 5; ++window) {  // the flush of several puts is a packet, or goes with their last one
    for (std::uint8_t i = 0; i < 10; ++i) ASSERT_EQ(put(i, bytes, nullptr), CANELE_OK);
    EXPECT_EQ(flush(), CANELE_OK);
  }
}

struct Order {
  canele_completion_counter_t counter{};
  std::uint64_t calls = 0;
  bool in_order = true;
};
void compare_counts(canele_request_t*, unsigned, void* order) {
  auto& o = *static_cast<Order*>(order);
  o.in_order = o.in_order && canele_completion_counter_value(&o.counter) == o.calls;
  ++o.calls;
}

/// A notification that adds to a counter does not overtake one that calls a function.
TEST_P(OneSidedShortPut, CountedNotificationsKeepTheirOrder) {
  constexpr std::uint64_t rounds = 400;
  Order order;
  canele_completion_t call{};
  call.kind = CANELE_COMPLETE_CALLBACK;
  call.callback = compare_counts;
  call.user = &order;
  const canele_access_options_t calls = notifying(call);
  const canele_access_options_t counts = notifying({CANELE_COMPLETE_COUNTER, 0, &order.counter, nullptr, nullptr});
  const std::vector<std::uint8_t> bytes(8, 1);
  for (std::uint64_t i = 0; i < rounds; ++i) {
    ASSERT_EQ(put(0, bytes, nullptr, &calls), CANELE_OK);
    ASSERT_EQ(put(8, bytes, nullptr, &counts), CANELE_OK);
    if (i % 50 == 0) {
      EXPECT_EQ(flush(), CANELE_OK);
    }
  }
  EXPECT_EQ(flush(), CANELE_OK);
  ASSERT_TRUE(job_.until([&] { return canele_completion_counter_value(&order.counter) == rounds; }));
  EXPECT_EQ(order.calls, rounds);
  EXPECT_TRUE(order.in_order);
  EXPECT_EQ(canele_notification_close(job_.handle(target()), calls.slot), CANELE_OK);
  EXPECT_EQ(canele_notification_close(job_.handle(target()), counts.slot), CANELE_OK);
}

/// The counter's threshold calls a function, so it is reached without the engine's lock: the function may post.
TEST_P(OneSidedShortPut, TheThresholdOfACountedNotificationCallsTheProgram) {
  struct Reached {
    canele_engine_t* engine;
    std::atomic<int> calls{0};
  } reached{job_.handle(target())};
  canele_completion_t then{};
  then.kind = CANELE_COMPLETE_CALLBACK;
  then.callback = [](canele_request_t*, unsigned, void* user) {
    auto& r = *static_cast<Reached*>(user);
    canele_lane_t* lane = nullptr;  // takes the engine's lock
    EXPECT_EQ(canele_lane_open(r.engine, &lane), CANELE_OK);
    EXPECT_EQ(canele_lane_close(lane), CANELE_OK);
    ++r.calls;
  };
  then.user = &reached;
  canele_completion_counter_t counter{};
  ASSERT_EQ(canele_completion_counter_init(&counter, 3, &then), CANELE_OK);
  const canele_access_options_t notify = notifying({CANELE_COMPLETE_COUNTER, 0, &counter, nullptr, nullptr});
  const std::vector<std::uint8_t> bytes(8, 1);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(reached.calls, i < 3 ? 0 : 1);
    ASSERT_EQ(put(0, bytes, nullptr, &notify), CANELE_OK);
    EXPECT_EQ(flush(), CANELE_OK);
    ASSERT_TRUE(job_.until([&] { return canele_completion_counter_value(&counter) == static_cast<unsigned>(i) + 1; }));
  }
  EXPECT_EQ(reached.calls, 1);
  EXPECT_EQ(canele_notification_close(job_.handle(target()), notify.slot), CANELE_OK);
}

INSTANTIATE_TEST_SUITE_P(Shm, OneSidedShortPutByShm, testing::Values(Case{"shm", 1}), name_of_way);

}  // namespace
}  // namespace canele::test::one_sided_access
