// SPDX-License-Identifier: BSD-3-Clause
//
// The C++ layer of completion queues, counters and conditions on a job of one rank.
//
// The main thread, and threads that some tests start. All messages go to the own rank.
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <canele/post.hpp>
#include <canele/wakeup.hpp>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "unit/cpp_layer/one_rank.hpp"

namespace canele::test::cpp_layer {
namespace {

struct Tile {
  int number = 0;
};

template <typename T>
constexpr bool stays = !std::is_copy_constructible_v<T> && !std::is_move_constructible_v<T> &&
                       !std::is_copy_assignable_v<T> && !std::is_move_assignable_v<T>;
static_assert(stays<canele::queue<Tile>> && stays<canele::completion_counter> && stays<canele::condition>);
static_assert(sizeof(canele::completion) == sizeof(canele_completion_t));
static_assert(sizeof(canele::completion_counter) == sizeof(canele_completion_counter_t));
static_assert(sizeof(canele::condition) == sizeof(canele_condition_t));

using CppQueue = OneRank;

// ---- queues ---------------------------------------------------------------------------------------------------------

TEST_F(CppQueue, AQueueTellsWhatHasEnded) {
  canele::queue<Tile> queue(engine);
  Tile tile{7};
  canele::post_receive(session, 0, 10, canele::one(in), queue.entry_for(&tile));
  session.send(0, 10, canele::one(out));
  const canele::entry<Tile> entry = queue.wait();
  EXPECT_EQ(entry.user(), &tile);
  EXPECT_EQ(entry.user()->number, 7);
  EXPECT_EQ(entry.kind(), CANELE_ENTRY_REQUEST);
  EXPECT_EQ(entry.code(), CANELE_OK);
  EXPECT_EQ(entry.source(), 0);
  EXPECT_EQ(entry.tag(), 10u);
  EXPECT_EQ(entry.length(), sizeof out);
  EXPECT_EQ(entry.native().request, nullptr);
  EXPECT_EQ(in, 42);
}

TEST_F(CppQueue, AQueueGivesSeveralEntriesInTheirOrder) {
  canele::queue<const int> queue(engine);
  const std::array<int, 20> numbers = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19};
  std::array<int, 20> got{};
  for (std::size_t i = 0; i < got.size(); ++i)
    canele::post_receive(session, 0, 11, canele::one(got[i]), queue.entry_for(&numbers[i]));
  for (const int& each : numbers) session.send(0, 11, canele::one(each));
  std::array<canele::entry<const int>, 16> room;
  std::vector<int> order;
  while (order.size() < got.size()) {
    const auto some = queue.wait(room);
    ASSERT_GE(some.size(), 1u);
    ASSERT_LE(some.size(), room.size());
    for (const auto& each : some) order.push_back(*each.user());
  }
  EXPECT_TRUE(std::equal(order.begin(), order.end(), numbers.begin()));
  EXPECT_EQ(got, numbers);
}

TEST_F(CppQueue, TakeNeverBlocks) {
  canele::queue<> queue(engine);
  std::array<canele::entry<>, 2> room;
  EXPECT_TRUE(queue.take(room).empty());
  canele::post_receive(session, 0, 12, canele::one(in), queue.entry_for());
  EXPECT_TRUE(queue.take(room).empty());
  session.send(0, 12, canele::one(out));
  std::size_t count = 0;
  progress_until([&] { return (count = queue.take(room).size()) != 0; });
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(room[0].user(), nullptr);
}

TEST_F(CppQueue, AQueueWaitsUntilADeadline) {
  canele::queue<> queue(engine);
  std::array<canele::entry<>, 2> room;
  EXPECT_TRUE(queue.wait(room, 0).empty());
  EXPECT_TRUE(queue.wait(room, engine.now() + 1'000'000).empty());
}

TEST_F(CppQueue, AQueueWithoutRoomIsRefused) {
  canele::queue<> queue(engine);
  EXPECT_EQ(code_of([&] { static_cast<void>(queue.take({})); }), CANELE_EINVAL);
  EXPECT_EQ(code_of([&] { static_cast<void>(queue.wait(std::span<canele::entry<>>())); }), CANELE_EINVAL);
}

TEST_F(CppQueue, AnEntryTellsAnError) {
  canele::queue<> queue(engine);
  const std::array<int, 2> two = {1, 2};
  canele::post_receive(session, 0, 13, canele::one(in), queue.entry_for());
  session.send(0, 13, two);
  const canele::entry<> entry = queue.wait();
  EXPECT_EQ(entry.code(), CANELE_ETRUNC);
  EXPECT_EQ(entry.outcome().length, sizeof two);
  EXPECT_FALSE(entry.outcome().cancelled);
  EXPECT_EQ(code_of([&] { entry.outcome().check(); }), CANELE_ETRUNC);
}

TEST_F(CppQueue, AnEntryNamesARequestOfTheProgram) {
  canele::queue<> queue(engine);
  canele::request mine, other;
  for (int round = 0; round < 3; ++round) {  // used again as soon as its entry is taken
    canele::post_receive(session, 0, 14, canele::one(in), mine, queue.entry_for());
    session.send(0, 14, canele::one(out));
    const canele::entry<> entry = queue.wait();
    EXPECT_TRUE(entry.is_of(mine));
    EXPECT_FALSE(entry.is_of(other));
  }
  session.isend(0, 14, canele::one(out), mine);  // an ordinary use
  EXPECT_EQ(receive(14), 42);
  mine.wait();
}

TEST_F(CppQueue, ARequestInUseIsRefusedAndGoesOn) {
  canele::queue<> queue(engine);
  canele::request mine;
  canele::post_receive(session, 0, 15, canele::one(in), mine, queue.entry_for());
  const auto again = [&] { canele::post_receive(session, 0, 15, canele::one(in), mine, queue.entry_for()); };
  EXPECT_EQ(code_of(again), CANELE_EBUSY);
  mine.cancel();
  const canele::entry<> entry = queue.wait();
  EXPECT_TRUE(entry.is_of(mine));
  EXPECT_EQ(entry.code(), CANELE_ECANCELED);
  EXPECT_TRUE(entry.outcome().cancelled);
  again();  // free again
  session.send(0, 15, canele::one(out));
  EXPECT_EQ(queue.wait().code(), CANELE_OK);
}

TEST_F(CppQueue, EntriesThatAreLeftAreDropped) {
  for (int round = 0; round < 3; ++round) {
    canele::queue<> queue(engine);
    std::array<int, 40> got{};
    for (int& each : got) canele::post_receive(session, 0, 16, canele::one(each), queue.entry_for());
    for (std::size_t i = 0; i < got.size(); ++i) session.send(0, 16, canele::one(out));
    progress_until([&] { return got.back() == 42; });
  }
  EXPECT_NE(engine.report().find(" 0 requests pending"), std::string::npos) << engine.report();
}

TEST_F(CppQueue, AQueueCannotBeWaitedForInAFunction) {
  canele::queue<> queue(engine);
  int code = CANELE_OK, calls = 0;
  auto ended = [&] {
    code = code_of([&] { static_cast<void>(queue.wait()); });
    ++calls;
  };
  canele::post_send(session, 0, 17, canele::one(out), canele::call(ended));
  EXPECT_EQ(receive(17), 42);
  progress_until([&] { return calls != 0; });
  EXPECT_EQ(code, CANELE_EDEADLK);
}

TEST_F(CppQueue, SeveralThreadsShareAQueue) {
  constexpr int messages = 200;
  canele::queue<int> queue(engine);
  std::array<int, messages> got{};
  std::atomic<int> left{messages};
  for (int& each : got) canele::post_receive(session, 0, 18, canele::one(each), queue.entry_for(&each));
  const auto take = [&] {
    std::array<canele::entry<int>, 4> room;
    while (left > 0) {
      for (const auto& each : queue.wait(room, engine.now() + 1'000'000)) left -= *each.user() == 42 ? 1 : 0;
    }
  };
  std::thread one(take), two(take);
  for (int i = 0; i < messages; ++i) session.send(0, 18, canele::one(out));
  one.join();
  two.join();
  EXPECT_EQ(left, 0);
}

// ---- counters and conditions ----------------------------------------------------------------------------------------

TEST_F(CppQueue, ACounterCountsEnds) {
  canele::completion_counter counter;
  EXPECT_EQ(counter.value(), 0u);
  std::array<int, 3> got{};
  for (int& each : got) canele::post_receive(session, 0, 20, canele::one(each), counter.adding());
  for (std::size_t i = 0; i < got.size(); ++i) canele::post_send(session, 0, 20, canele::one(out), counter.adding(10));
  counter.wait(engine, 33);
  EXPECT_EQ(counter.value(), 33u);
  EXPECT_EQ(counter.errors(), 0u);
  EXPECT_EQ(counter.first_error(), CANELE_OK);
  counter.add(2);
  EXPECT_EQ(counter.value(), 35u);
  counter.reset();
  EXPECT_EQ(counter.value(), 0u);
}

TEST_F(CppQueue, ACounterGivesOneEntryForManyEnds) {
  canele::queue<Tile> queue(engine);
  Tile tile;
  canele::completion_counter counter(3, queue.entry_for(&tile));
  std::array<canele::entry<Tile>, 4> room;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(queue.take(room).empty());
    counter.add(1);
  }
  const auto entries = queue.take(room);
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].kind(), CANELE_ENTRY_COUNTER);
  EXPECT_EQ(entries[0].user(), &tile);
  EXPECT_EQ(entries[0].immediate(), 3u);
  EXPECT_EQ(entries[0].source(), -1);
}

TEST_F(CppQueue, CountersFormTrees) {
  canele::completion_counter root;
  canele::completion_counter left(2, root.adding()), right(1, root.adding(4));
  left.add(1);
  EXPECT_EQ(root.value(), 0u);
  left.add(1);
  right.add(1);
  EXPECT_EQ(root.value(), 5u);
}

TEST_F(CppQueue, ACounterCallsAFunction) {
  int calls = 0;
  canele::status seen;
  seen.length = 1;
  auto reached = [&](const canele::status& outcome) { seen = outcome, ++calls; };
  canele::completion_counter counter(2, canele::call(reached));
  counter.add(2);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(seen.length, 0u) << "it has no request";
}

TEST_F(CppQueue, ACounterWaitsUntilADeadline) {
  canele::completion_counter counter;
  EXPECT_FALSE(counter.wait(engine, 1, 0));
  EXPECT_FALSE(counter.wait(engine, 1, engine.now() + 1'000'000));
  counter.add(1);
  EXPECT_TRUE(counter.wait(engine, 1, 0));
}

TEST_F(CppQueue, ACounterThrowsTheFirstError) {
  canele::completion_counter counter;
  const std::array<int, 2> two = {1, 2};
  canele::post_receive(session, 0, 21, canele::one(in), counter.adding());
  session.send(0, 21, two);
  try {
    counter.wait(engine, 1);
    FAIL() << "an operation has failed";
  } catch (const canele::error& problem) {
    EXPECT_EQ(problem.code(), CANELE_ETRUNC);
    EXPECT_NE(std::string(problem.what()).find("completion counter"), std::string::npos) << problem.what();
  }
  EXPECT_EQ(counter.errors(), 1u);
  EXPECT_EQ(counter.first_error(), CANELE_ETRUNC);
}

TEST_F(CppQueue, ACounterWithAWrongCompletionIsRefused) {
  const canele::completion wrong({17, 0, nullptr, nullptr, nullptr});
  EXPECT_EQ(code_of([&] { canele::completion_counter counter(1, wrong); }), CANELE_EINVAL);
}

TEST_F(CppQueue, AWakeupTellsOfEntries) {
  canele::queue<int> queue(engine);
  canele::wakeup wakeup(engine, queue);
  const auto readable = [&](int ms) {
    pollfd one{wakeup.descriptor(), POLLIN, 0};
    return ::poll(&one, 1, ms) > 0;
  };
  std::array<canele::entry<int>, 4> room;
  const auto arm = [&] {
    std::size_t taken = 0;
    while (!wakeup.arm()) taken += queue.take(room).size();
    return taken;
  };
  canele::post_receive(session, 0, 23, canele::one(in), queue.entry_for());
  EXPECT_EQ(arm(), 0u);
  EXPECT_FALSE(readable(0));
  session.send(0, 23, canele::one(out));
  EXPECT_TRUE(readable(10'000));
  wakeup.disarm();
  EXPECT_EQ(queue.take(room).size() + arm(), 1u);
  EXPECT_EQ(in, 42);
}

TEST_F(CppQueue, AConditionIsSet) {
  canele::condition condition;
  EXPECT_EQ(condition.test(0xffff), 0u);
  canele::post_receive(session, 0, 22, canele::one(in), condition.setting(4));
  session.send(0, 22, canele::one(out));
  condition.wait(engine, 4 | 1);
  EXPECT_EQ(condition.test(0xffff), 4u);
  condition.signal(1);
  EXPECT_EQ(condition.test(3), 1u);
  EXPECT_EQ(code_of([&] { condition.wait(engine, 0); }), CANELE_EINVAL);
  EXPECT_EQ(code_of([&] { canele::post_send(session, 0, 22, canele::one(out), condition.setting(0)); }), CANELE_EINVAL);
}

}  // namespace
}  // namespace canele::test::cpp_layer
