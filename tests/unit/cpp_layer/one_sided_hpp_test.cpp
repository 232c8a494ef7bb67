// SPDX-License-Identifier: BSD-3-Clause
//
// The C++ layer of one-sided operations on a job of one rank, which accesses its own memory: owners and their moves,
// each operation in each form, notifications, errors, destruction while pending.
//
// The main thread. tests/unit/api has the operations between ranks.
#include <gtest/gtest.h>

#include <array>
#include <canele/one_sided.hpp>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "unit/cpp_layer/one_rank.hpp"

namespace canele::test::cpp_layer {
namespace {

template <typename T>
constexpr bool moves_only = !std::is_copy_constructible_v<T> && !std::is_copy_assignable_v<T> &&
                            std::is_nothrow_move_constructible_v<T> && std::is_nothrow_move_assignable_v<T>;
static_assert(moves_only<canele::memory> && moves_only<canele::allocated_memory<int>> && moves_only<canele::key>);
static_assert(moves_only<canele::lane> && moves_only<canele::notification>);
static_assert(std::is_trivially_copyable_v<canele::key_bytes> && sizeof(canele::key_bytes) == CANELE_KEY_SIZE);
static_assert(std::is_trivially_copyable_v<canele::remote_word<int>>);
static_assert(!canele::detail::atomic_word<short> && !canele::detail::atomic_word<double>);
static_assert(!std::is_constructible_v<canele::memory, canele::engine&, std::vector<int>>, "a temporary is gone");
static_assert(!std::is_constructible_v<canele::memory, canele::engine&, const std::vector<int>&>);

class CppOneSided : public ::testing::Test {
 protected:
  static constexpr std::size_t count = 1000;

  canele::engine engine{"CANELE_WORKER=none"};
  std::vector<std::uint64_t> target = std::vector<std::uint64_t>(count);
  canele::memory memory{engine, target};
  canele::key key{engine, memory.key()};
  const std::array<std::uint64_t, 3> values = {1, 2, 3};
  std::array<std::uint64_t, 3> got{};
};

/// Returns the offset of a word, in bytes.
constexpr std::uint64_t word_at(std::uint64_t index) { return 8 * index; }

// ---- owners ---------------------------------------------------------------------------------------------------------

TEST_F(CppOneSided, AKeyTellsWhatItIs) {
  EXPECT_EQ(key.rank(), 0);
  EXPECT_EQ(key.length(), count * 8);
  EXPECT_NE(key.native(), nullptr);
  EXPECT_NE(memory.native(), nullptr);
  EXPECT_EQ(memory.key(), memory.key());
}

TEST_F(CppOneSided, BytesThatAreNoKeyAreRefused) {
  EXPECT_EQ(code_of([&] { canele::key wrong(engine, canele::key_bytes{}); }), CANELE_EINVAL);
}

TEST_F(CppOneSided, MemoryOfARangeIsRegistered) {
  std::array<int, 4> words{};
  const canele::memory whole(engine, words), part(engine, std::span(words).first(2)), none(engine, std::span<int>());
  EXPECT_EQ(canele::key(engine, whole.key()).length(), sizeof words);
  EXPECT_EQ(canele::key(engine, part.key()).length(), 2 * sizeof(int));
  EXPECT_EQ(canele::key(engine, none.key()).length(), 0u);
  EXPECT_EQ(code_of([&] { canele::memory wrong(engine, words, 8); }), CANELE_EINVAL);
}

TEST_F(CppOneSided, AMovedMemoryStaysRegistered) {
  std::optional<canele::memory> moved(std::move(memory));
  key.put(0, values);
  EXPECT_EQ(target[2], 3u);
  EXPECT_EQ(code_of([&] { static_cast<void>(memory.key()); }), CANELE_EINVAL) << "it is empty";
  memory = std::move(*moved);
  moved.reset();
  key.put(8, values);
  EXPECT_EQ(target[3], 3u);
}

TEST_F(CppOneSided, DestroyedMemoryIsRevoked) {
  std::array<int, 4> words{};
  std::optional<canele::memory> second(std::in_place, engine, words);
  const canele::key other(engine, second->key());
  second.reset();
  EXPECT_EQ(code_of([&] { other.put(0, canele::one(values[0])); }), CANELE_EREVOKED);
  EXPECT_EQ(words, (std::array<int, 4>{}));
}

TEST_F(CppOneSided, MemoryMayBeFreedBefore) {
  memory.free();
  EXPECT_EQ(memory.native(), nullptr);
  EXPECT_EQ(code_of([&] { key.put(0, values); }), CANELE_EREVOKED);
  EXPECT_EQ(code_of([&] { memory.free(); }), CANELE_EINVAL);
}

TEST_F(CppOneSided, AllocatedMemoryIsZeroAndTyped) {
  canele::allocated_memory<std::uint32_t> shared(engine, 100);
  ASSERT_EQ(shared.values().size(), 100u);
  EXPECT_EQ(std::accumulate(shared.values().begin(), shared.values().end(), 0u), 0u);
  const canele::key remote(engine, shared.key());
  remote.word<std::uint32_t>(4 * 99).fetch_add(5);
  EXPECT_EQ(shared.values()[99], 5u);
  const canele::allocated_memory<std::uint32_t> moved(std::move(shared));
  remote.put(0, canele::one(std::as_const(moved.values()[99])));
  EXPECT_EQ(moved.values()[0], 5u);
  const std::size_t all = SIZE_MAX / 2;
  EXPECT_EQ(code_of([&] { canele::allocated_memory<std::uint64_t> wrong(engine, all); }), CANELE_EINVAL);
}

TEST_F(CppOneSided, AllocatedMemoryIsMapped) {
  canele::allocated_memory<std::uint64_t> shared(engine, 10);
  const canele::key remote(engine, shared.key());
  shared.values()[9] = 77;
  const auto mapped = remote.map<std::uint64_t>();
  ASSERT_EQ(mapped.size(), 10u);
  EXPECT_EQ(mapped[9], 77u);
  EXPECT_EQ(remote.map().size(), 80u);
  EXPECT_EQ(code_of([&] { static_cast<void>(key.map<int>()); }), CANELE_EDRIVER) << "registered memory";
}

TEST_F(CppOneSided, AKeyAllowsWhatItSays) {
  const canele::memory readable(engine, target, CANELE_ACCESS_READ);
  const canele::key reader(engine, readable.key());
  reader.get(0, got);
  EXPECT_EQ(code_of([&] { reader.put(0, values); }), CANELE_EACCESS);
  EXPECT_EQ(code_of([&] { reader.word<int>(0).fetch_add(1); }), CANELE_EACCESS);
}

TEST_F(CppOneSided, AMovedKeyGoesOn) {
  const auto word = key.word<std::uint64_t>(0);
  canele::key moved(std::move(key));
  moved.put(0, values);
  EXPECT_EQ(word.load(), 1u) << "a word follows its key";
  key = std::move(moved);
  key.put(8, values);
  EXPECT_EQ(target[1], 1u);
}

TEST_F(CppOneSided, ADestroyedKeyWaitsForItsOperations) {
  {
    const canele::key second(engine, memory.key());
    for (std::uint64_t i = 0; i < 100; ++i) second.iput(word_at(i), values, canele::until_flush);
  }
  EXPECT_EQ(target[101], 3u);
}

TEST_F(CppOneSided, ADestroyedLaneWaitsForItsOperations) {
  {
    const canele::lane lane(engine);
    for (std::uint64_t i = 0; i < 100; ++i) key.iput(word_at(i), values, canele::until_flush, {.lane = &lane});
  }
  EXPECT_EQ(target[101], 3u);
}

TEST_F(CppOneSided, LanesMove) {
  canele::lane first(engine);
  canele::lane moved(std::move(first)), other(engine);
  EXPECT_EQ(first.native(), nullptr);
  EXPECT_NE(moved.native(), other.native());
  std::swap(moved, other);
  key.put(0, values, {.lane = &moved});
  key.put(24, values, {.lane = &other});
  EXPECT_EQ(target[5], 3u);
}

using CppOneSidedDeathTest = CppOneSided;
TEST_F(CppOneSidedDeathTest, AKeyInUseDestroyedInAFunctionEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto destroys = [&] {
    const canele::key second(engine, memory.key());
    second.iput(0, values, canele::until_flush);
  };
  canele::completion_counter counter(1, canele::call(destroys));
  EXPECT_DEATH(counter.add(1), "a key in use was destroyed inside a completion callback");
}

// ---- put and get ----------------------------------------------------------------------------------------------------

TEST_F(CppOneSided, PutAndGetBlock) {
  key.put(word_at(10), values);
  EXPECT_EQ(target[12], 3u);
  key.get(word_at(10), got);
  EXPECT_EQ(got, values);
}

TEST_F(CppOneSided, PutAndGetReturnRequests) {
  auto written = key.iput(word_at(10), values);
  EXPECT_EQ(written.wait().code, CANELE_OK);
  auto read = key.iget(word_at(10), got);
  read.wait();
  EXPECT_EQ(got, values);
}

TEST_F(CppOneSided, PutAndGetUseARequest) {
  canele::request request;
  for (int round = 0; round < 2; ++round) {
    key.iput(word_at(10), values, request);
    request.wait();
    key.iget(word_at(10), got, request);
    request.wait();
    EXPECT_EQ(got, values);
  }
}

TEST_F(CppOneSided, PutAndGetTellACounter) {
  canele::completion_counter counter;
  key.iput(word_at(10), values, counter.adding());
  counter.wait(engine, 1);
  key.iget(word_at(10), got, counter.adding());
  counter.wait(engine, 2);
  EXPECT_EQ(got, values);
}

TEST_F(CppOneSided, PutTellsAQueueOfItsRequest) {
  canele::queue<> queue(engine);
  canele::request mine;
  key.iput(word_at(10), values, mine, queue.entry_for());
  EXPECT_TRUE(queue.wait().is_of(mine));
  key.iget(word_at(10), got, mine, queue.entry_for());  // used again
  EXPECT_TRUE(queue.wait().is_of(mine));
  EXPECT_EQ(got, values);
}

TEST_F(CppOneSided, AFlushCoversWhatHasNoCompletion) {
  for (std::uint64_t i = 0; i < 50; ++i) key.iput(word_at(i), values, canele::until_flush);
  key.iget(word_at(0), got, canele::until_flush);
  canele::flush(engine, key.rank());
  EXPECT_EQ(target[51], 3u);
  EXPECT_EQ(got, (std::array<std::uint64_t, 3>{1, 1, 1}));
}

TEST_F(CppOneSided, APendingOperationMayBeDestroyed) {
  { auto written = key.iput(word_at(10), values); }  // waits
  EXPECT_EQ(target[10], 1u);
}

TEST_F(CppOneSided, WrongAccessesAreRefusedAndTheRequestStaysUsable) {
  canele::request request;
  EXPECT_EQ(code_of([&] { key.iput(word_at(count), values, request); }), CANELE_EACCESS);
  EXPECT_EQ(code_of([&] { key.iget(word_at(count - 2), got, request); }), CANELE_EACCESS);
  EXPECT_EQ(code_of([&] { key.get(0, got, {.slot = 1}); }), CANELE_EINVAL) << "a get does not notify";
  key.iput(0, values, request);
  request.wait();
}

// ---- atomic operations ----------------------------------------------------------------------------------------------

TEST_F(CppOneSided, AtomicOperationsReturnTheFormerValue) {
  const auto word = key.word<std::uint64_t>(word_at(5));
  EXPECT_EQ(word.fetch_add(12), 0u);
  EXPECT_EQ(word.load(), 12u);
  EXPECT_EQ(word.fetch_and(8), 12u);
  EXPECT_EQ(word.fetch_or(3), 8u);
  EXPECT_EQ(word.fetch_xor(1), 11u);
  EXPECT_EQ(word.exchange(100), 10u);
  EXPECT_EQ(word.compare_exchange(99, 5), 100u) << "the word differs";
  EXPECT_EQ(word.compare_exchange(100, 5), 100u);
  EXPECT_EQ(target[5], 5u);
}

TEST_F(CppOneSided, WordsHaveFourOrEightBytesAndMayBeNegative) {
  const auto small = key.word<std::int32_t>(4);
  EXPECT_EQ(small.exchange(-5), 0);
  EXPECT_EQ(small.fetch_add(-1), -5);
  EXPECT_EQ(small.compare_exchange(-6, 7), -6);
  EXPECT_EQ(small.load(), 7);
  EXPECT_EQ(target[0], std::uint64_t{7} << 32) << "its neighbour is untouched";
  const auto large = key.word<std::int64_t>(8);
  EXPECT_EQ(large.exchange(-5), 0);
  EXPECT_EQ(large.load(), -5);
}

TEST_F(CppOneSided, AddsAreCoveredByAFlush) {
  const auto word = key.word<std::uint64_t>(0);
  for (std::uint64_t i = 1; i <= 10; ++i) word.iadd(i);
  canele::flush(engine, 0);
  EXPECT_EQ(target[0], 55u);
  canele::completion_counter counter;
  word.iadd(1, counter.adding());
  counter.wait(engine, 1);
  EXPECT_EQ(target[0], 56u);
}

TEST_F(CppOneSided, AtomicOperationsHaveEveryForm) {
  const auto word = key.word<std::uint64_t>(0);
  std::uint64_t before = 9;
  auto started = word.iatomic(CANELE_ATOMIC_ADD, 3, 0, &before);
  started.wait();
  EXPECT_EQ(before, 0u);
  canele::request request;
  word.iatomic(CANELE_ATOMIC_SWAP, 7, 0, &before, request);
  request.wait();
  EXPECT_EQ(before, 3u);
  canele::condition condition;
  word.iatomic(CANELE_ATOMIC_COMPARE_AND_SWAP, 8, 7, nullptr, condition.setting(1));
  condition.wait(engine, 1);
  EXPECT_EQ(target[0], 8u);
}

TEST_F(CppOneSided, WordsThatAreNotAlignedAreRefused) {
  EXPECT_EQ(code_of([&] { key.word<std::uint64_t>(4).fetch_add(1); }), CANELE_EINVAL);
  EXPECT_EQ(code_of([&] { key.word<std::uint64_t>(word_at(count)).fetch_add(1); }), CANELE_EACCESS);
}

TEST_F(CppOneSided, AccumulatesCombineRanges) {
  key.accumulate(word_at(1), values, CANELE_SUM);
  key.accumulate(word_at(1), values, CANELE_SUM);
  EXPECT_EQ(target[3], 6u);
  key.fetch_accumulate(word_at(1), values, CANELE_REPLACE, got);
  EXPECT_EQ(got, (std::array<std::uint64_t, 3>{2, 4, 6}));
  EXPECT_EQ(target[3], 3u);
  key.iaccumulate(word_at(1), values, CANELE_MAX);
  canele::flush(engine, 0);
  EXPECT_EQ(target[1], 1u);
  std::array<std::uint64_t, 2> too_small{};
  EXPECT_EQ(code_of([&] { key.fetch_accumulate(0, values, CANELE_SUM, too_small); }), CANELE_EINVAL);
}

// ---- notifications, flushes -----------------------------------------------------------------------------------------

TEST_F(CppOneSided, APutNotifiesAQueue) {
  canele::queue<int> queue(engine);
  int user = 0;
  const canele::notification slot(engine, queue.entry_for(&user));
  EXPECT_GE(slot.slot(), 1u);
  key.put(word_at(4), values, {.slot = slot.slot(), .immediate = 99});
  const auto entry = queue.wait();
  EXPECT_EQ(entry.kind(), CANELE_ENTRY_NOTIFICATION);
  EXPECT_EQ(entry.user(), &user);
  EXPECT_EQ(entry.slot(), slot.slot());
  EXPECT_EQ(entry.source(), 0);
  EXPECT_EQ(entry.immediate(), 99u);
  EXPECT_EQ(entry.tag(), word_at(4));
  EXPECT_EQ(entry.length(), sizeof values);
  EXPECT_EQ(target[6], 3u);
}

TEST_F(CppOneSided, NotificationsWithoutData) {
  canele::completion_counter arrived, sent;
  const canele::notification slot(engine, arrived.adding());
  const canele::access_options options{.slot = slot.slot()};
  canele::inotify(engine, 0, options).wait();
  canele::request request;
  canele::inotify(engine, 0, options, request);
  request.wait();
  canele::inotify(engine, 0, options, sent.adding());
  canele::inotify(engine, 0, options, canele::until_flush);
  canele::flush(engine, 0);
  sent.wait(engine, 1);
  arrived.wait(engine, 4);
  EXPECT_EQ(arrived.value(), 4u);
}

TEST_F(CppOneSided, ANotificationCallsAFunction) {
  int calls = 0;
  auto notified = [&] { ++calls; };
  const canele::notification slot(engine, canele::call(notified));
  canele::inotify(engine, 0, {.slot = slot.slot()}).wait();
  while (calls == 0) engine.progress();
  EXPECT_EQ(calls, 1);
}

TEST_F(CppOneSided, NotificationSlotsMoveAndClose) {
  canele::completion_counter arrived;
  std::optional<canele::notification> moved;
  std::uint32_t number = 0;
  {
    canele::notification slot(engine, arrived.adding());
    number = slot.slot();
    moved.emplace(std::move(slot));
    EXPECT_EQ(slot.slot(), 0u);
  }
  canele::inotify(engine, 0, {.slot = number}).wait();
  arrived.wait(engine, 1);
  canele::notification other(engine, arrived.adding());
  std::swap(*moved, other);
  EXPECT_EQ(other.slot(), number);
  moved.reset();
  canele::inotify(engine, 0, {.slot = number}).wait();
  other = canele::notification(engine, arrived.adding());
  EXPECT_EQ(code_of([&] { canele::inotify(engine, 0, {.slot = number}).wait(); }), CANELE_EREVOKED);
}

TEST_F(CppOneSided, WrongNotificationsAreRefused) {
  EXPECT_EQ(code_of([&] { canele::notification slot(engine, {}); }), CANELE_EINVAL);
  EXPECT_EQ(code_of([&] { canele::notification slot(engine, canele::unwatched); }), CANELE_EINVAL);
  EXPECT_EQ(code_of([&] { canele::inotify(engine, 0, {}).wait(); }), CANELE_EINVAL) << "no slot";
  EXPECT_EQ(code_of([&] { canele::inotify(engine, 1, {.slot = 1}).wait(); }), CANELE_ERANK);
}

TEST_F(CppOneSided, FlushesHaveEveryForm) {
  const canele::lane lane(engine);
  canele::request request;
  canele::completion_counter counter;
  key.iput(0, values, canele::until_flush, {.lane = &lane});
  canele::iflush(engine, 0, {.lane = &lane}).wait();
  EXPECT_EQ(target[2], 3u);
  canele::iflush(engine, 0, request);
  request.wait();
  canele::iflush(engine, 0, counter.adding(), {.lane = &lane});
  counter.wait(engine, 1);
  EXPECT_EQ(code_of([&] { canele::flush(engine, 1); }), CANELE_ERANK);
}

TEST_F(CppOneSided, AFlushThrowsTheErrorOfWhatItCovers) {
  memory.free();
  key.iput(0, values, canele::until_flush);
  EXPECT_EQ(code_of([&] { canele::flush(engine, 0); }), CANELE_EREVOKED);
  canele::flush(engine, 0);  // told once
}

}  // namespace
}  // namespace canele::test::cpp_layer
