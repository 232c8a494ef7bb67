// SPDX-License-Identifier: BSD-3-Clause
//
// Chunks of one-sided operations that no honest rank sends, and accesses that the target must reject.
//
// Chunks are handed to the parser directly, so that every byte can be wrong; the sanitizer builds run this test, too.
#include <canele/one_sided.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "unit/protocol/packets.hpp"

namespace canele::test::one_sided_hostile {
namespace {

namespace wire = comm::wire;
using wire::Type;

constexpr std::size_t size = 4096;
constexpr auto pattern = std::byte{0x5a};

template <typename T>
Bytes operator+(Bytes to, const T& value) {
  const Bytes more = bytes_of(value);
  to.insert(to.end(), more.begin(), more.end());
  return to;
}
Bytes flags(std::uint32_t value = 0) { return Bytes() + value; }

/// An addition of words of 8 bytes whose result is not wanted.
wire::Accumulate sum(std::uint32_t length) { return {comm::Handle::none, length, CANELE_SUM, CANELE_UINT64, {}}; }
/// Reads the whole memory atomically.
constexpr wire::Accumulate read_all{comm::Handle{1}, size, CANELE_NO_OP, CANELE_UINT64, {}};

/// Rank 0 sends rank 1 any chunk.
class OneSidedChunks : public testing::Test {
 protected:
  OneSidedChunks() { meet(job_, job_.open("s")); }

  /// Returns rank 1's verdict on a chunk from rank 0.
  comm::Verdict give(Type type, std::uint64_t tag, std::uint32_t index, const Bytes& payload, std::uint16_t lane = 0) {
    return give_packet(job_, chunk(type, tag, index, lane, payload));
  }
  void expect_violation(const char* text, Type type, std::uint64_t tag, std::uint32_t index, const Bytes& payload,
                        std::uint16_t lane = 0) {
    EXPECT_STREQ(reason(give(type, tag, index, payload, lane)), text);
  }

  LocalJob job_;
};

/// Rank 1 owns memory.
class OneSidedHostile : public OneSidedChunks {
 protected:
  OneSidedHostile() : memory_(size + 2 * guard, pattern) {
    canele_memory_options_t options{};
    options.struct_size = sizeof options;
    EXPECT_EQ(canele_memory_register(job_.handle(1), base(), size, &options, &writable_), CANELE_OK);
    options.access = CANELE_ACCESS_READ;
    EXPECT_EQ(canele_memory_register(job_.handle(1), base(), size, &options, &readable_), CANELE_OK);
    EXPECT_TRUE(attach(1, writable_, 0).is_ok());
    EXPECT_TRUE(attach(2, readable_, 0).is_ok());
  }
  ~OneSidedHostile() override {
    EXPECT_TRUE(std::all_of(memory_.begin(), memory_.end(), [](std::byte one) { return one == pattern; }))
        << "memory was written";
    job_.destroy(0);  // the answers to what it has not sent would be violations there
    EXPECT_EQ(canele_memory_free(writable_), CANELE_OK);
    EXPECT_EQ(canele_memory_free(readable_), CANELE_OK);
  }

  std::byte* base() { return memory_.data() + guard; }
  static const comm::one_sided::Region& region_of(const canele_memory_t* memory) {
    return *reinterpret_cast<const comm::one_sided::Region*>(memory);
  }
  comm::Verdict attach(std::uint32_t index, const canele_memory_t* memory, std::uint64_t wrong_nonce) {
    const comm::one_sided::Region& region = region_of(memory);
    return give(Type::attach, word_of(region.handle), index, Bytes() + (region.nonce ^ wrong_nonce));
  }
  /// Returns how many operations of rank 0 the target has rejected.
  std::uint64_t rejected() { return job_.engine(1).counters.read(comm::Counter::accesses_rejected); }
  void expect_rejected(Type type, std::uint64_t offset, std::uint32_t index, const Bytes& payload) {
    const std::uint64_t before = rejected();
    EXPECT_TRUE(give(type, offset, index, payload).is_ok()) << offset << ", index " << index;
    EXPECT_EQ(rejected(), before + 1) << offset << ", index " << index;
  }

  static constexpr std::size_t guard = 64;
  std::vector<std::byte> memory_;
  canele_memory_t *writable_ = nullptr, *readable_ = nullptr;
};

TEST_F(OneSidedHostile, OffsetsThatWrapAndRangesBeyondTheMemory) {
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t offset : {std::uint64_t{size}, std::uint64_t{size - 7}, most - 7, most, most / 2}) {
    expect_rejected(Type::put, offset, 1, flags() + std::uint64_t{0});
    expect_rejected(Type::get, offset, 1, flags() + wire::GetRange{comm::Handle{9}, 8});
    expect_rejected(Type::atomic, offset, 1,
                    flags() + wire::AtomicWord{1, 0, comm::Handle{9}, CANELE_ATOMIC_ADD, 8, {}});
    expect_rejected(Type::accumulate, offset, 1, flags() + sum(8) + std::uint64_t{1});
  }
  for (const std::uint64_t length : {std::uint64_t{size + 1}, most, most - 8, most / 2 + 1})
    expect_rejected(Type::get, 16, 1, flags() + wire::GetRange{comm::Handle{9}, length});
}

TEST_F(OneSidedHostile, WhatTheKeyDoesNotAllow) {
  expect_rejected(Type::put, 0, 2, flags() + std::uint64_t{1});
  expect_rejected(Type::atomic, 0, 2, flags() + wire::AtomicWord{1, 0, comm::Handle::none, CANELE_ATOMIC_SWAP, 4, {}});
  expect_rejected(Type::accumulate, 0, 2, flags() + sum(8) + std::uint64_t{1});
  expect_rejected(Type::accumulate, 4, 1, flags() + sum(8) + std::uint64_t{1});
  expect_rejected(Type::atomic, 4, 1, flags() + wire::AtomicWord{1, 0, comm::Handle::none, CANELE_ATOMIC_ADD, 8, {}});
}

TEST_F(OneSidedHostile, IndexesWithoutAKey) {
  ASSERT_TRUE(attach(3, writable_, 1).is_ok()) << "a nonce with one wrong bit names nothing";
  ASSERT_TRUE(give(Type::attach, 12345, 4, Bytes() + std::uint64_t{1}).is_ok());
  for (const std::uint32_t index : {0u, 3u, 4u, 5u, 99'999'999u}) expect_rejected(Type::put, 0, index, flags() + 1);
  ASSERT_TRUE(give(Type::detach, 0, 1, Bytes()).is_ok());
  expect_rejected(Type::put, 0, 1, flags() + 1);
}

TEST_F(OneSidedHostile, RevokedMemoryIsNotTouched) {
  const Bytes put = flags() + std::uint64_t{1};
  ASSERT_EQ(canele_memory_free(writable_), CANELE_OK);
  expect_rejected(Type::put, 0, 1, put);
  ASSERT_EQ(canele_memory_register(job_.handle(1), base(), size, nullptr, &writable_), CANELE_OK);
  expect_rejected(Type::put, 0, 1, put);  // the index names what was there before
}

TEST_F(OneSidedHostile, Violations) {
  const char* const index = "it names a memory region by an index that is not valid";
  expect_violation(index, Type::attach, 1, 0, Bytes(8));
  expect_violation(index, Type::attach, 1, comm::one_sided::most_attached + 1, Bytes(8));
  expect_violation(index, Type::attach, 1, 1, Bytes(7));
  for (const std::uint32_t unknown : {0u, 3u, 1u << 31})
    expect_violation("it forgets a memory region that it has not named", Type::detach, 0, unknown, {});
  expect_violation("a put is too short", Type::put, 0, 1, Bytes(3));
  expect_violation("a put is too short", Type::put, 0, 1, flags(wire::access_notifies) + std::uint64_t{0});
  expect_violation("a get is too short", Type::get, 0, 1, flags());
  expect_violation("an atomic operation is too short", Type::atomic, 0, 1, flags());
  const char* const kind = "an atomic operation is of no known kind";
  for (const auto& [operation, bytes] : {std::pair{int{CANELE_ATOMIC_ADD}, 16}, {int{CANELE_ATOMIC_ADD}, 0}, {99, 8}}) {
    expect_violation(
        kind, Type::atomic, 0, 1,
        flags() +
            wire::AtomicWord{
                1, 0, comm::Handle::none, static_cast<std::uint8_t>(operation), static_cast<std::uint8_t>(bytes), {}});
  }
  expect_violation("an accumulate is too short", Type::accumulate, 0, 1, flags() + std::uint64_t{0});
  const char* const no_kind = "an accumulate is of no known kind";
  expect_violation(no_kind, Type::accumulate, 0, 1, flags() + sum(8) + std::uint32_t{1});
  expect_violation(no_kind, Type::accumulate, 0, 1, flags() + sum(4) + std::uint32_t{1});
  const auto many = static_cast<std::uint32_t>(comm::one_sided::longest_accumulate) + 8;
  for (const auto& [operation, element, bytes] :
       {std::tuple{12, 0, 8u}, {34, 0, 8u}, {CANELE_SUM, 20, 8u}, {CANELE_NO_OP, CANELE_INT8, many}}) {
    const wire::Accumulate fields{
        comm::Handle{9}, bytes, static_cast<std::uint8_t>(operation), static_cast<std::uint8_t>(element), {}};
    expect_violation(no_kind, Type::accumulate, 0, 1,
                     operation == CANELE_NO_OP ? flags() + fields : flags() + fields + std::uint64_t{0});
  }
  expect_violation("a notification is too short", Type::notify, 0, 0, flags());
  expect_violation("a flush is too short", Type::flush, 0, 0, {});
  expect_violation("it acknowledges operations of a lane that this rank has not used", Type::executed, 1, 0, {}, 7);
  expect_violation("it answers an operation that this rank has not made", Type::got, 77, 0, Bytes(1));
  expect_violation("it answers an atomic operation that this rank has not made", Type::result, 77, 0, Bytes(8));
  expect_violation("it rejects an operation that this rank has not sent", Type::access_failed, 1, 0,
                   Bytes() + std::int32_t{CANELE_EACCESS});
  expect_violation("its program has taken notifications that this rank has not sent", Type::notified, 1, 0, {});
}

/// Permissions of a rank that attached nothing, or that says more than it may.
TEST_F(OneSidedChunks, Permissions) {
  const char* const unknown = "it permits accesses to memory that this rank has not attached";
  const Bytes fits = Bytes() + wire::Attached{0, 1, 8, 0, 0} + std::uint64_t{0};
  expect_violation(unknown, Type::attached, 1, 1, fits);
  std::vector<std::byte> far(64);
  canele_memory_t* memory = nullptr;
  canele_key_t* key = nullptr;
  unsigned char bytes[CANELE_KEY_SIZE];
  ASSERT_EQ(canele_memory_register(job_.handle(0), far.data(), far.size(), nullptr, &memory), CANELE_OK);
  ASSERT_EQ(canele_memory_key(memory, bytes), CANELE_OK);
  ASSERT_EQ(canele_key_open(job_.handle(1), bytes, &key), CANELE_OK);
  canele_request_t put{};
  const canele_data_t data = canele_data_contiguous(far.data(), 8);
  ASSERT_EQ(canele_put(key, 8, &data, nullptr, &put), CANELE_OK);  // rank 1 attaches it by index 1
  ASSERT_TRUE(job_.finish(put));
  for (const auto& [number, index] : {std::pair{0u, 1u}, {2u, 1u}, {1u, 2u}, {1u, 1u << 31}})
    expect_violation(unknown, Type::attached, number, index, fits);
  const char* const wrong_size = "a permission to access memory has a wrong size";
  for (const wire::Attached& fields : {wire::Attached{0, 1, 8, 1, 0}, {0, 1, 7, 0, 0}, {0, 1, 257, 0, 0}})
    expect_violation(wrong_size, Type::attached, 1, 1, Bytes() + fields + std::uint64_t{0});
  expect_violation(wrong_size, Type::attached, 1, 1, Bytes(15));
  for (const std::uint32_t word : {512u, 1u << 31, ~0u}) {
    expect_violation("a permission to access memory names no free word", Type::attached, 1, 1,
                     Bytes() + wire::Attached{word, 1, 8, 0, 0} + std::uint64_t{0});
  }
  EXPECT_EQ(canele_key_close(key), CANELE_OK);
  EXPECT_TRUE(give(Type::attached, 1, 1, fits).is_ok()) << "the key is closed: the answer comes too late";
  EXPECT_EQ(canele_memory_free(memory), CANELE_OK);
}

TEST_F(OneSidedHostile, LargePutsAndGets) {
  const Bytes large = flags(wire::access_by_message);
  expect_violation("a put is too short", Type::put, 0, 1, large);
  for (const std::uint64_t length : {std::uint64_t{size + 1}, std::numeric_limits<std::uint64_t>::max()})
    expect_rejected(Type::get, 0, 1, large + wire::GetRange{comm::Handle{9}, length});
  ASSERT_TRUE(give(Type::put, 0, 1, large + std::uint64_t{size}).is_ok());
  ASSERT_TRUE(give(Type::put, 0, 2, large + std::uint64_t{size}, 1).is_ok()) << "another lane; rejected at its end";
  const char* const early = "its operation follows a large put that is not over";
  expect_violation(early, Type::put, 0, 1, flags() + std::uint64_t{1});
  expect_violation(early, Type::put, 0, 1, large + std::uint64_t{1});
  expect_violation(early, Type::get, 0, 1, flags() + wire::GetRange{comm::Handle{1}, 8});
  expect_violation(early, Type::atomic, 0, 1, flags() + wire::AtomicWord{1, 0, comm::Handle::none, 0, 8, {}});
  expect_violation(early, Type::accumulate, 0, 1, flags() + sum(8) + std::uint64_t{1});
  expect_violation(early, Type::notify, 0, 0, flags() + wire::Notification{1, 0, 0, 1, 0});
  expect_violation(early, Type::flush, 0, 0, flags());
}

TEST_F(OneSidedHostile, Strides) {
  const Bytes put = flags(wire::access_strided), large = flags(wire::access_strided | wire::access_by_message);
  const auto get = [](std::uint64_t length, const wire::Strides& strides) {
    return flags(wire::access_strided) + wire::GetRange{comm::Handle{9}, length} + strides;
  };
  const char *const no_put = "a put has no valid strides", *const no_get = "a get has no valid strides";
  expect_violation(no_put, Type::put, 0, 1, put + std::uint32_t{8});
  expect_violation(no_get, Type::get, 0, 1, flags(wire::access_strided) + wire::GetRange{comm::Handle{9}, 8});
  for (const wire::Strides& wrong : {wire::Strides{0, 8}, {0, 0}, {8, 7}, {8, 0}, {5, 8}, {~0u, ~0u}}) {
    expect_violation(no_put, Type::put, 0, 1, put + wrong + std::uint64_t{1});
    expect_violation(no_put, Type::put, 0, 1, large + std::uint64_t{8} + wrong);
    expect_violation(no_get, Type::get, 0, 1, get(8, wrong));
  }
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  expect_rejected(Type::put, 0, 1, put + wire::Strides{1, ~0u} + std::uint64_t{1});
  expect_rejected(Type::put, 0, 1, put + wire::Strides{1, size / 7 + 1} + std::uint64_t{1});
  expect_rejected(Type::get, 0, 1, get(size + 1, {1, 1}));
  expect_rejected(Type::get, 0, 1, get(most, {1, ~0u}));
  expect_rejected(Type::get, size - 15, 1, get(16, {8, 8}));
}

TEST_F(OneSidedHostile, LimitsAreChecked) {
  Bytes gets;  // in one packet: no answer leaves before the last one
  for (std::uint32_t i = 0; i <= comm::one_sided::most_served; ++i) {
    const Bytes one = chunk(Type::get, 0, 1, 0, flags() + wire::GetRange{comm::Handle{1}, size});
    gets.insert(gets.end(), one.begin(), one.end());
  }
  EXPECT_STREQ(reason(give_packet(job_, gets)), "it makes more gets than may be under way");
  Bytes sums;
  for (std::uint32_t i = 0; i <= comm::one_sided::most_served; ++i) {
    const Bytes one = chunk(Type::accumulate, 0, 1, 0, flags() + read_all);
    sums.insert(sums.end(), one.begin(), one.end());
  }
  EXPECT_STREQ(reason(give_packet(job_, sums)), "it awaits more answers than may be under way");
  canele_queue_t queue{};
  canele_completion_t then{};
  then.kind = CANELE_COMPLETE_QUEUE;
  then.object = &queue;
  std::uint32_t slot = 0;
  ASSERT_EQ(canele_notification_open(job_.handle(1), &then, &slot), CANELE_OK);
  const Bytes notify = flags() + wire::Notification{1, 0, 0, slot, 0};
  for (std::uint64_t i = 0; i < comm::one_sided::most_notifications; ++i)
    ASSERT_TRUE(give(Type::notify, 0, 0, notify).is_ok());
  expect_violation("it sends more notifications than may wait for this program", Type::notify, 0, 0, notify);
  canele_entry_t entry{};
  std::uint64_t taken = 0;
  while (canele_queue_wait(job_.handle(1), &queue, &entry, 1, 0) == 1) ++taken;
  EXPECT_EQ(taken, comm::one_sided::most_notifications);
}

}  // namespace
}  // namespace canele::test::one_sided_hostile
