// SPDX-License-Identifier: BSD-3-Clause
//
// One-sided operations between two engines, over each driver, and of a rank with itself.
#include <canele/one_sided.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/unit/api/one_sided_job.hpp"

namespace canele::test::one_sided_access {
namespace {

class OneSided : public OneSidedJob {};

TEST_P(OneSided, PutIsVisibleWhenItIsDone) {
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{8}, std::size_t{1000}, window - 16}) {
    const std::vector<std::uint8_t> bytes = pattern(length, static_cast<unsigned>(length));
    canele_request_t request{};
    ASSERT_EQ(put(16, bytes, &request), CANELE_OK) << canele_error_detail();
    ASSERT_TRUE(job_.finish(request));
    EXPECT_EQ(status_of(request).error, CANELE_OK);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), base() + 16)) << length;
  }
}

TEST_P(OneSided, GetReadsWhatIsThere) {
  const std::vector<std::uint8_t> there = pattern(window, 3);
  std::copy(there.begin(), there.end(), base());
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{8}, std::size_t{1000}, window - 16}) {
    std::vector<std::uint8_t> bytes(length);
    canele_request_t request{};
    ASSERT_EQ(get(16, bytes, &request), CANELE_OK) << canele_error_detail();
    ASSERT_TRUE(job_.finish(request));
    EXPECT_EQ(status_of(request).error, CANELE_OK);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), base() + 16)) << length;
  }
}

TEST_P(OneSided, OperationsOfALaneAreOrdered) {
  std::vector<std::vector<std::uint8_t>> kept;
  for (unsigned i = 0; i < 200; ++i) {
    kept.push_back(std::vector<std::uint8_t>(i % 7 == 0 ? 200'000 : 8 + i, static_cast<std::uint8_t>(i)));
    ASSERT_EQ(put(0, kept.back(), nullptr), CANELE_OK);
    if (i % 3 == 0) job_.step_all();
  }
  std::vector<std::uint8_t> bytes(8);
  canele_request_t request{};
  ASSERT_EQ(get(0, bytes, &request), CANELE_OK);
  ASSERT_TRUE(job_.finish(request));
  EXPECT_EQ(bytes, std::vector<std::uint8_t>(8, 199));
  EXPECT_EQ(flush(), CANELE_OK);
}

TEST_P(OneSided, FlushCoversPutsWithoutCompletion) {
  std::mt19937 random(7);
  std::vector<std::vector<std::uint8_t>> kept;
  for (unsigned i = 0; i < 64; ++i) {
    kept.push_back(pattern(1 + random() % 10'000, i));
    ASSERT_EQ(put(i * 10'240, kept.back(), nullptr), CANELE_OK);
  }
  EXPECT_EQ(flush(), CANELE_OK);
  for (unsigned i = 0; i < 64; ++i) EXPECT_TRUE(std::equal(kept[i].begin(), kept[i].end(), base() + i * 10'240)) << i;
}

TEST_P(OneSided, AtomicOperationsGiveTheFormerValue) {
  std::uint64_t word = 5, before = 0;
  std::memcpy(base() + 8, &word, sizeof word);
  const auto apply = [&](canele_atomic_operation operation, std::uint64_t operand, std::uint64_t compare = 0) {
    canele_request_t request{};
    EXPECT_EQ(canele_atomic(key_, 8, operation, 8, operand, compare, &before, nullptr, &request), CANELE_OK)
        << canele_error_detail();
    EXPECT_TRUE(job_.finish(request));
    std::memcpy(&word, base() + 8, sizeof word);
    return before;
  };
  EXPECT_EQ(apply(CANELE_ATOMIC_READ, 0), 5u);
  EXPECT_EQ(apply(CANELE_ATOMIC_ADD, 10), 5u);
  EXPECT_EQ(word, 15u);
  EXPECT_EQ(apply(CANELE_ATOMIC_SWAP, 0xff), 15u);
  EXPECT_EQ(apply(CANELE_ATOMIC_AND, 0x0f), 0xffu);
  EXPECT_EQ(apply(CANELE_ATOMIC_OR, 0x30), 0x0fu);
  EXPECT_EQ(apply(CANELE_ATOMIC_XOR, 0x01), 0x3fu);
  EXPECT_EQ(word, 0x3eu);
  EXPECT_EQ(apply(CANELE_ATOMIC_COMPARE_AND_SWAP, 1, 0x3f), 0x3eu);
  EXPECT_EQ(word, 0x3eu);
  EXPECT_EQ(apply(CANELE_ATOMIC_COMPARE_AND_SWAP, 1, 0x3e), 0x3eu);
  EXPECT_EQ(word, 1u);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(canele_atomic(key_, 12, CANELE_ATOMIC_ADD, 4, 0xffffffff, 0, nullptr, nullptr, nullptr), CANELE_OK);
  }
  EXPECT_EQ(flush(), CANELE_OK);
  std::uint32_t half = 0;
  std::memcpy(&half, base() + 12, sizeof half);
  EXPECT_EQ(half, static_cast<std::uint32_t>(-1000));
}

TEST_P(OneSided, NotificationComesAfterTheData) {
  canele_queue_t queue{};
  canele_completion_t then{};
  then.kind = CANELE_COMPLETE_QUEUE;
  then.object = &queue;
  then.user = &queue;
  std::uint32_t slot = 0;
  ASSERT_EQ(canele_notification_open(job_.handle(target()), &then, &slot), CANELE_OK) << canele_error_detail();
  canele_access_options_t with = options();
  with.slot = slot;
  std::uint64_t got = 0;
  std::vector<std::vector<std::uint8_t>> kept;
  const auto take = [&] {
    canele_entry_t entry{};
    while (canele_queue_take(job_.handle(target()), &queue, &entry, 1) == 1) {
      EXPECT_EQ(entry.kind, static_cast<std::uint32_t>(CANELE_ENTRY_NOTIFICATION));
      EXPECT_EQ(entry.user, &queue);
      EXPECT_EQ(entry.source, 0);
      EXPECT_EQ(entry.slot, slot);
      EXPECT_EQ(entry.immediate, got);
      EXPECT_EQ(entry.length, kept[got].size());
      EXPECT_TRUE(std::equal(kept[got].begin(), kept[got].end(), base() + entry.tag));
      ++got;
    }
  };
  constexpr std::uint64_t puts = 3000;  // more than may wait for the program
  for (std::uint64_t i = 0; i < puts; ++i) {
    kept.push_back(pattern(i % 100 == 0 ? 100'000 : 8, static_cast<unsigned>(i)));
    with.immediate = i;
    ASSERT_EQ(put(kept.back().size() == 8 ? 8 * (i % 8192) : 65'536, kept.back(), nullptr, &with), CANELE_OK);
    if (kept.back().size() != 8) {
      ASSERT_TRUE(job_.until([&] {
        take();
        return got == i + 1;
      }));
    }
  }
  ASSERT_TRUE(job_.until([&] {
    take();
    return got == puts;
  }));
  EXPECT_EQ(canele_notification_close(job_.handle(target()), slot), CANELE_OK);
  canele_request_t request{};
  ASSERT_EQ(canele_notify(job_.handle(0), target(), &with, &request), CANELE_OK);
  ASSERT_TRUE(job_.finish(request));
  EXPECT_EQ(status_of(request).error, CANELE_EREVOKED);
}

TEST_P(OneSided, RevokedAndWrongAccessIsAnErrorAtTheOrigin) {
  const std::vector<std::uint8_t> bytes(16, 1);
  canele_request_t request{};
  EXPECT_EQ(put(window - 8, bytes, &request), CANELE_EACCESS);
  EXPECT_EQ(put(~std::uint64_t{0}, bytes, &request), CANELE_EACCESS);
  ASSERT_EQ(put(0, bytes, &request), CANELE_OK);
  ASSERT_TRUE(job_.finish(request));
  ASSERT_EQ(canele_memory_free(std::exchange(registered_, nullptr)), CANELE_OK);
  if (!mapped()) std::fill_n(base(), 16, static_cast<unsigned char>(9));  // else there is no memory any more
  ASSERT_EQ(put(0, bytes, &request), CANELE_OK);
  ASSERT_TRUE(job_.finish(request));
  EXPECT_EQ(status_of(request).error, CANELE_EREVOKED);
  std::vector<std::uint8_t> into(16);
  ASSERT_EQ(get(0, into, &request), CANELE_OK);
  ASSERT_TRUE(job_.finish(request));
  EXPECT_EQ(status_of(request).error, CANELE_EREVOKED);
  ASSERT_EQ(put(0, bytes, nullptr), CANELE_OK);
  EXPECT_EQ(flush(), CANELE_EREVOKED);
  EXPECT_EQ(flush(), CANELE_OK) << "an error is told once";
  ASSERT_EQ(get(0, into, nullptr), CANELE_OK);
  EXPECT_EQ(flush(), CANELE_EREVOKED);
  std::uint64_t before = 0;
  ASSERT_EQ(canele_atomic(key_, 0, CANELE_ATOMIC_ADD, 8, 1, 0, &before, nullptr, nullptr), CANELE_OK);
  EXPECT_EQ(flush(), CANELE_EREVOKED);
  EXPECT_EQ(flush(), CANELE_OK);
  canele_access_options_t none{};
  none.struct_size = sizeof none;
  none.done.kind = CANELE_COMPLETE_NONE;
  ASSERT_EQ(put(0, bytes, nullptr, &none), CANELE_OK);
  EXPECT_EQ(flush(), CANELE_EREVOKED);
  if (!mapped()) {
    EXPECT_EQ(base()[0], 9);
  }
}

/// A flush ends with the answer to the operation before it, and then needs no chunk.
TEST_P(OneSided, FlushBehindAnAnswerCoversWhatIsBeforeIt) {
  if (mapped()) GTEST_SKIP() << "for operations by packets";
  const auto accesses = [&] { return job_.engine(0).counters.read(comm::Counter::accesses_sent); };
  constexpr std::uint64_t rounds = 200;
  std::uint64_t before = 0;
  std::fill_n(base(), window, static_cast<unsigned char>(0));
  for (std::uint64_t i = 0; i < rounds; ++i) {
    const std::vector<std::uint8_t> bytes(8 + i, static_cast<std::uint8_t>(i)), later(8, 0xee);
    const bool is_last = i % 2 == 0;  // of the operations before the flush
    ASSERT_EQ(put(64, bytes, nullptr), CANELE_OK);
    ASSERT_EQ(canele_atomic(key_, 8, CANELE_ATOMIC_ADD, 8, 1, 0, &before, nullptr, nullptr), CANELE_OK);
    if (!is_last) {
      ASSERT_EQ(put(4096, later, nullptr), CANELE_OK);
    }
    const std::uint64_t sent = accesses();
    EXPECT_EQ(flush(), CANELE_OK);
    EXPECT_EQ(before, i);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), base() + 64));
    EXPECT_EQ(accesses() - sent, is_last ? 0u : 1u) << "chunks of the flush";
    EXPECT_EQ(base()[4096], is_last ? 0 : 0xee);
    base()[4096] = 0;
  }
}

TEST_P(OneSided, FlushWaitsForAnswersThatComeLate) {
  canele_completion_counter_t notified{};
  canele_access_options_t with = notifying({CANELE_COMPLETE_COUNTER, 0, &notified, nullptr, nullptr});
  const std::vector<std::uint8_t> there = pattern(window, 5);
  std::copy(there.begin(), there.end(), base());
  for (const bool notifies : {false, true}) {
    std::vector<std::uint8_t> first(8), second(window - 8);  // the second one takes several steps
    ASSERT_EQ(get(0, first, nullptr), CANELE_OK);
    ASSERT_EQ(get(8, second, nullptr), CANELE_OK);
    if (notifies) {
      ASSERT_EQ(canele_notify(job_.handle(0), target(), &with, nullptr), CANELE_OK);
    }
    EXPECT_EQ(flush(), CANELE_OK);
    EXPECT_TRUE(std::equal(first.begin(), first.end(), there.begin()));
    EXPECT_TRUE(std::equal(second.begin(), second.end(), there.begin() + 8));
  }
  ASSERT_TRUE(job_.until([&] { return canele_completion_counter_value(&notified) == 1; }));
  EXPECT_EQ(canele_notification_close(job_.handle(target()), with.slot), CANELE_OK);
}

TEST_P(OneSided, ALaneFlushesIfItNeedNotWait) {
  canele_lane_t* lane = nullptr;
  ASSERT_EQ(canele_lane_open(job_.handle(0), &lane), CANELE_OK);
  canele_access_options_t in_lane = options();
  in_lane.lane = lane;
  EXPECT_EQ(canele_lane_try_flush(lane), 1);
  const std::vector<std::uint8_t> bytes(8, 1);
  ASSERT_EQ(put(0, bytes, nullptr, &in_lane), CANELE_OK);
  EXPECT_EQ(canele_lane_try_flush(lane), mapped() ? 1 : 0);
  canele_request_t request{};
  ASSERT_EQ(canele_flush(job_.handle(0), target(), &in_lane, &request), CANELE_OK);
  ASSERT_TRUE(job_.finish(request));
  EXPECT_EQ(canele_lane_try_flush(lane), 1);
  EXPECT_EQ(canele_lane_try_flush(nullptr), CANELE_EINVAL);
  EXPECT_EQ(canele_lane_close(lane), CANELE_OK) << canele_error_detail();
}

/// Operations on mapped memory follow those of their lane that go by packets.
TEST_P(OneSided, MappedAndOtherMemoryInOneLane) {
  if (!mapped()) GTEST_SKIP() << "for mapped memory";
  void* there = nullptr;
  ASSERT_EQ(canele_key_map(key_, &there), CANELE_OK) << canele_error_detail();
  EXPECT_NE(there, base());
  std::vector<std::uint8_t> other(window, 0), bytes(window, 7), flag(8, 1), into(8);
  canele_memory_t* memory = nullptr;
  canele_key_t* key = nullptr;
  unsigned char packed[CANELE_KEY_SIZE];
  ASSERT_EQ(canele_memory_register(job_.handle(target()), other.data(), window, nullptr, &memory), CANELE_OK);
  ASSERT_EQ(canele_memory_key(memory, packed), CANELE_OK);
  ASSERT_EQ(canele_key_open(job_.handle(0), packed, &key), CANELE_OK);
  EXPECT_EQ(canele_key_map(key, &there), CANELE_EDRIVER);
  const canele_data_t data = canele_data_contiguous(bytes.data(), window);
  for (int round = 1; round < 20; ++round) {
    std::fill(bytes.begin(), bytes.end(), static_cast<std::uint8_t>(round));
    std::fill(flag.begin(), flag.end(), static_cast<std::uint8_t>(round));
    ASSERT_EQ(canele_put(key, 0, &data, nullptr, nullptr), CANELE_OK);
    ASSERT_EQ(put(8, flag, nullptr), CANELE_OK);
    ASSERT_TRUE(job_.until([&] { return base()[8] == round; }));
    EXPECT_EQ(other.front(), round);
    EXPECT_EQ(other.back(), round);
    EXPECT_EQ(flush(), CANELE_OK);
    canele_request_t request{};  // nothing is on its way: this put ends within its post
    ASSERT_EQ(put(16, flag, &request), CANELE_OK);
    EXPECT_EQ(base()[16], round);
    EXPECT_TRUE(status_of(request).error == CANELE_OK);
  }
  EXPECT_EQ(canele_key_close(key), CANELE_OK);
  EXPECT_EQ(canele_memory_free(memory), CANELE_OK);
}

/// More notifications than may be under way: the others wait at their origin until the program takes some.
TEST_P(OneSided, NotificationsWaitForTheProgram) {
  constexpr std::uint64_t notifications = 3000;
  canele_queue_t queue{};
  canele_access_options_t with = notifying({CANELE_COMPLETE_QUEUE, 0, &queue, nullptr, nullptr});
  for (with.immediate = 0; with.immediate < notifications; ++with.immediate)
    ASSERT_EQ(canele_notify(job_.handle(0), target(), &with, nullptr), CANELE_OK);
  canele_entry_t entry{};
  std::uint64_t taken = 0;
  ASSERT_TRUE(job_.until([&] {
    while (canele_queue_take(job_.handle(target()), &queue, &entry, 1) == 1) {
      EXPECT_EQ(entry.immediate, taken);
      ++taken;
    }
    return taken == notifications;
  }));
  EXPECT_EQ(flush(), CANELE_OK);
  EXPECT_EQ(canele_notification_close(job_.handle(target()), with.slot), CANELE_OK);
}

/// A get without a completion of its own: the flush ends when its data is here.
TEST_P(OneSided, FlushCoversGets) {
  std::vector<std::uint8_t> into(300'000);
  std::fill_n(base(), into.size(), static_cast<unsigned char>(3));
  const canele_data_t data = canele_data_contiguous(into.data(), into.size());
  ASSERT_EQ(canele_get(key_, 0, &data, nullptr, nullptr), CANELE_OK);
  EXPECT_EQ(flush(), CANELE_OK);
  const auto is_there = [&] { return std::count(into.begin(), into.end(), 3) == std::ptrdiff_t{300'000}; };
  EXPECT_TRUE(is_there());
  EXPECT_TRUE(job_.until(is_there));  // a get that is not over would hold up the end of the memory
}

/// The target frees memory while it answers a get: it blocks until the data has left.
TEST_P(OneSided, MemoryIsFreedAfterItsAnswers) {
  if (mapped()) GTEST_SKIP() << "for registered memory";
  std::fill_n(base(), window, static_cast<unsigned char>(4));
  std::vector<std::uint8_t> into(window);
  canele_request_t request{};
  ASSERT_EQ(get(0, into, &request), CANELE_OK);
  while (job_.engine(target()).counters.read(comm::Counter::accesses_executed) == 0) {
    canele_progress(job_.handle(0));
    canele_progress(job_.handle(target()));
  }
  std::atomic<bool> over{false};
  std::thread frees([&] {
    EXPECT_EQ(canele_memory_free(std::exchange(registered_, nullptr)), CANELE_OK);
    std::fill_n(base(), window, static_cast<unsigned char>(9));
    while (!over) canele_progress(job_.handle(target()));
  });
  EXPECT_EQ(canele_wait(&request, nullptr), CANELE_OK);
  over = true;
  frees.join();
  EXPECT_EQ(std::count(into.begin(), into.end(), 4), std::ptrdiff_t{window});
}

/// Reads a byte that another thread may be writing, like a program that polls its memory. It orders nothing.
[[gnu::noinline, gnu::no_sanitize_thread]] unsigned char peek(const volatile unsigned char* byte) { return *byte; }

/// The target frees memory while a large put is on its way to it: from the return on, nothing is written.
TEST_P(OneSided, MemoryIsFreedAfterALargePut) {
  if (mapped()) GTEST_SKIP() << "for registered memory";
  const std::vector<std::uint8_t> bytes(window, 4);
  canele_request_t request{};
  ASSERT_EQ(put(0, bytes, &request), CANELE_OK);
  std::atomic<bool> over{false};
  std::thread ends([&] {
    EXPECT_EQ(canele_wait(&request, nullptr), CANELE_OK);
    over = true;
  });
  while (peek(base()) != 4) canele_progress(job_.handle(target()));
  EXPECT_EQ(canele_memory_free(std::exchange(registered_, nullptr)), CANELE_OK);
  std::fill_n(base(), window, static_cast<unsigned char>(9));
  while (!over) canele_progress(job_.handle(target()));
  ends.join();
  EXPECT_EQ(std::count(base(), base() + window, 9), std::ptrdiff_t{window});
}

/// A flush covers a large put without a completion: then no operation of the key is pending.
TEST_P(OneSided, AFlushEndsLargePuts) {
  unsigned char bytes[CANELE_KEY_SIZE];
  ASSERT_EQ(canele_memory_key(registered_, bytes), CANELE_OK);
  const std::vector<std::uint8_t> data = pattern(100'000, 6);
  for (int i = 0; i < 50; ++i) {
    canele_key_t* key = nullptr;
    ASSERT_EQ(canele_key_open(job_.handle(0), bytes, &key), CANELE_OK);
    const canele_data_t part = canele_data_contiguous(data.data(), data.size());
    ASSERT_EQ(canele_put(key, 0, &part, nullptr, nullptr), CANELE_OK);
    EXPECT_EQ(flush(), CANELE_OK);
    ASSERT_EQ(canele_key_close(key), CANELE_OK) << canele_error_detail();
  }
  EXPECT_TRUE(std::equal(data.begin(), data.end(), base()));
}

/// Large accesses that the target does not allow: each is an error, and the lane goes on.
TEST_P(OneSided, LargeAccessesAreRejected) {
  if (mapped()) GTEST_SKIP() << "for registered memory";
  constexpr std::size_t length_at = 24;
  unsigned char bytes[CANELE_KEY_SIZE];
  ASSERT_EQ(canele_memory_key(registered_, bytes), CANELE_OK);
  const std::uint64_t more = 4 * window;
  std::memcpy(bytes + length_at, &more, sizeof more);
  canele_key_t* key = nullptr;
  ASSERT_EQ(canele_key_open(job_.handle(0), bytes, &key), CANELE_OK);
  std::fill_n(base(), window, static_cast<unsigned char>(0x77));
  std::vector<std::uint8_t> data(100'000, 1);
  const canele_data_t part = canele_data_contiguous(data.data(), data.size());
  for (int i = 0; i < 20; ++i) {
    canele_request_t written{}, read{}, flushed{};
    ASSERT_EQ(canele_put(key, window - 99'999, &part, nullptr, &written), CANELE_OK);
    ASSERT_EQ(canele_get(key, 2 * window, &part, nullptr, &read), CANELE_OK);
    ASSERT_EQ(canele_put(key, 3 * window, &part, nullptr, nullptr), CANELE_OK);
    ASSERT_EQ(canele_flush(job_.handle(0), target(), nullptr, &flushed), CANELE_OK);
    ASSERT_TRUE(job_.finish(written) && job_.finish(read) && job_.finish(flushed));
    EXPECT_EQ(status_of(written).error, CANELE_EACCESS);
    EXPECT_EQ(status_of(read).error, CANELE_EACCESS);
    EXPECT_EQ(status_of(flushed).error, CANELE_EACCESS) << "that of the put without a completion";
  }
  EXPECT_EQ(std::count(base(), base() + window, static_cast<unsigned char>(0x77)), std::ptrdiff_t{window});
  ASSERT_EQ(canele_key_close(key), CANELE_OK) << canele_error_detail();
  canele_request_t request{};
  ASSERT_EQ(put(0, data, &request), CANELE_OK);
  ASSERT_TRUE(job_.finish(request));
  EXPECT_TRUE(std::equal(data.begin(), data.end(), base()));
}

/// A get and then a put to the same bytes: the get reads what was there before.
TEST_P(OneSided, APutDoesNotOvertakeAGet) {
  std::vector<std::uint8_t> into(300'000), bytes(300'000, 2);
  std::fill_n(base(), into.size(), static_cast<unsigned char>(1));
  canele_request_t read{}, written{};
  ASSERT_EQ(get(0, into, &read), CANELE_OK);
  ASSERT_EQ(put(0, bytes, &written), CANELE_OK);
  ASSERT_TRUE(job_.finish(read) && job_.finish(written));
  EXPECT_EQ(std::count(into.begin(), into.end(), 1), std::ptrdiff_t{300'000});
  EXPECT_EQ(std::count(base(), base() + bytes.size(), 2), std::ptrdiff_t{300'000});
}

/// Keys with a wrong bit, and keys whose access does not allow the operation.
TEST_P(OneSided, KeysAreChecked) {
  unsigned char bytes[CANELE_KEY_SIZE], wrong[CANELE_KEY_SIZE];
  ASSERT_EQ(canele_memory_key(registered_, bytes), CANELE_OK);
  const std::vector<std::uint8_t> data(8, 1);
  std::mt19937 random(11);
  for (int i = 0; i < 300; ++i) {
    std::copy(std::begin(bytes), std::end(bytes), wrong);
    wrong[16 + random() % 24] ^= static_cast<unsigned char>(1 << random() % 8);  // region, length, nonce
    canele_key_t* key = nullptr;
    const int code = canele_key_open(job_.handle(0), wrong, &key);
    if (code != CANELE_OK) continue;
    canele_request_t request{};
    const canele_data_t from = canele_data_contiguous(data.data(), 8);
    // Within the memory that the key claims, but beyond the true one.
    const std::uint64_t offset = canele_key_length(key) != window ? canele_key_length(key) - 8 : 0;
    if (canele_key_length(key) > window) {
      ASSERT_EQ(canele_put(key, offset, &from, nullptr, &request), CANELE_OK) << canele_error_detail();
      ASSERT_TRUE(job_.finish(request));
      EXPECT_EQ(status_of(request).error, CANELE_EACCESS);
    } else if (canele_key_length(key) == window) {
      ASSERT_EQ(canele_put(key, offset, &from, nullptr, &request), CANELE_OK) << canele_error_detail();
      ASSERT_TRUE(job_.finish(request));
      EXPECT_EQ(status_of(request).error, CANELE_EREVOKED) << i;
    }
    EXPECT_EQ(canele_key_close(key), CANELE_OK);
  }
}

/// Returns how many accesses with random keys are made: more in a soak run.
std::uint64_t random_accesses() {
  const char* const text = std::getenv("CANELE_TEST_OPERATIONS");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 5'000;
}

/// Keys whose region or nonce is wrong, with any offset and length: each access is an error at the origin.
TEST_P(OneSided, RandomKeysHarmNothing) {
  constexpr std::size_t region_at = 16, length_at = 24, nonce_at = 32, longest = 64, large = 40'000;
  std::fill_n(base(), window, static_cast<unsigned char>(0x77));
  unsigned char bytes[CANELE_KEY_SIZE];
  ASSERT_EQ(canele_memory_key(registered_, bytes), CANELE_OK);
  std::mt19937_64 random(2026);
  std::vector<std::uint8_t> data(large, 1);
  std::uint64_t errors = 0;
  const std::uint64_t accesses = random_accesses();
  for (std::uint64_t i = 0; i < accesses; ++i) {
    const std::uint64_t length = random() >> random() % 64, other = random() | 1;
    std::uint64_t wrong = 0;
    const std::size_t at = random() % 2 == 0 ? region_at : nonce_at;
    std::memcpy(&wrong, bytes + at, sizeof wrong);
    wrong = random() % 2 == 0 ? other : wrong ^ std::uint64_t{1} << random() % 64;
    unsigned char forged[CANELE_KEY_SIZE];
    std::copy(std::begin(bytes), std::end(bytes), forged);
    std::memcpy(forged + at, &wrong, sizeof wrong);
    std::memcpy(forged + length_at, &length, sizeof length);
    canele_key_t* key = nullptr;
    ASSERT_EQ(canele_key_open(job_.handle(0), forged, &key), CANELE_OK) << canele_error_detail();
    const canele_data_t part = canele_data_contiguous(data.data(), i % 50 < 2 ? large : random() % (longest + 1));
    canele_request_t request{};
    const std::uint64_t offset = random() % 2 == 0 ? random() : random() % (window / 8) * 8;
    const int code = i % 3 == 0   ? canele_put(key, offset, &part, nullptr, &request)
                     : i % 3 == 1 ? canele_get(key, offset, &part, nullptr, &request)
                                  : canele_atomic(key, offset & ~std::uint64_t{7}, CANELE_ATOMIC_ADD, 8, 1, 0,
                                                  data.data(), nullptr, &request);
    if (code == CANELE_OK) {
      ASSERT_TRUE(job_.finish(request));
      errors += status_of(request).error == CANELE_EREVOKED;
    } else {
      errors += code == CANELE_EACCESS;
    }
    ASSERT_EQ(canele_key_close(key), CANELE_OK);
  }
  EXPECT_EQ(errors, accesses);
  EXPECT_EQ(std::count(base(), base() + window, static_cast<unsigned char>(0x77)), std::ptrdiff_t{window});
}

using OneSidedDeath = testing::TestWithParam<const char*>;

/// The target ends while operations of every kind wait, are written, or await their answer.
TEST_P(OneSidedDeath, EndsWhatIsPending) {
  LocalJob job({2, {comm::find_driver("self"), comm::find_driver(GetParam())}, "aggregate", {}});
  std::vector<unsigned char> memory(window);
  canele_memory_t* registered = nullptr;
  unsigned char bytes[CANELE_KEY_SIZE];
  canele_key_t* key = nullptr;
  ASSERT_EQ(canele_memory_register(job.handle(1), memory.data(), window, nullptr, &registered), CANELE_OK);
  ASSERT_EQ(canele_memory_key(registered, bytes), CANELE_OK);
  ASSERT_EQ(canele_key_open(job.handle(0), bytes, &key), CANELE_OK);
  std::vector<std::uint8_t> out(window), in(window);
  const canele_data_t small = canele_data_contiguous(out.data(), 8), all = canele_data_contiguous(out.data(), window),
                      into = canele_data_contiguous(in.data(), window);
  canele_request_t first{};
  ASSERT_EQ(canele_put(key, 0, &small, nullptr, &first), CANELE_OK);
  ASSERT_TRUE(job.finish(first));
  constexpr int rounds = 40;
  std::vector<canele_request_t> requests(5 * rounds);
  std::uint64_t before = 0;
  for (int i = 0; i < rounds; ++i) {
    canele_request_t* const r = &requests[static_cast<std::size_t>(5 * i)];
    ASSERT_EQ(canele_put(key, 0, i % 4 == 0 ? &all : &small, nullptr, &r[0]), CANELE_OK);
    ASSERT_EQ(canele_get(key, 0, &into, nullptr, &r[1]), CANELE_OK);
    ASSERT_EQ(canele_atomic(key, 0, CANELE_ATOMIC_ADD, 8, 1, 0, &before, nullptr, &r[2]), CANELE_OK);
    ASSERT_EQ(canele_put(key, 8, &small, nullptr, nullptr), CANELE_OK);
    ASSERT_EQ(canele_flush(job.handle(0), 1, nullptr, &r[3]), CANELE_OK);
    canele_access_options_t options{};
    options.struct_size = sizeof options;
    options.slot = 1;
    ASSERT_EQ(canele_notify(job.handle(0), 1, &options, &r[4]), CANELE_OK);
    if (i == rounds / 2) {
      for (int turn = 0; turn < 20; ++turn) job.step_all();
    }
  }
  job.destroy(1);
  delete reinterpret_cast<comm::one_sided::Region*>(registered);  // its engine is gone
  for (const canele_request_t& request : requests) ASSERT_TRUE(job.finish(request));
  EXPECT_EQ(status_of(requests.back()).error, CANELE_EPEER);
  EXPECT_EQ(job.engine(0).pending_sends, 0u);
  EXPECT_EQ(canele_key_close(key), CANELE_OK) << canele_error_detail();
}
INSTANTIATE_TEST_SUITE_P(All, OneSidedDeath, testing::Values("shm", "tcp"),
                         [](const auto& one) { return std::string(one.param); });

INSTANTIATE_TEST_SUITE_P(All, OneSided, every_way, name_of_way);

}  // namespace
}  // namespace canele::test::one_sided_access
