// SPDX-License-Identifier: BSD-3-Clause
//
// Puts and gets that the origin makes by itself: the target permits them, and takes the permission back.
#include <canele/one_sided.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

#include "comm/state/access_permit.hpp"
#include "unit/engine/local_job.hpp"

namespace canele::test::direct_access {
namespace {

using comm::Counter;
using comm::one_sided::AccessPermit;

TEST(AccessPermit, BelongsToOneGeneration) {
  AccessPermit::Word word{0};
  const AccessPermit permit(word);
  EXPECT_FALSE(permit.enter(1)) << "not open";
  permit.open(1);
  EXPECT_FALSE(permit.enter(2));
  EXPECT_TRUE(permit.is_idle(1));
  ASSERT_TRUE(permit.enter(1));
  ASSERT_TRUE(permit.enter(1));
  permit.close();
  EXPECT_FALSE(permit.enter(1)) << "closed";
  EXPECT_FALSE(permit.is_idle(1));
  permit.leave();
  EXPECT_FALSE(permit.is_idle(1));
  permit.leave();
  EXPECT_TRUE(permit.is_idle(1));
  permit.open(AccessPermit::most_generations);
  EXPECT_FALSE(permit.enter(1));
  EXPECT_TRUE(permit.enter(AccessPermit::most_generations));
  EXPECT_TRUE(permit.is_idle(1)) << "another generation is under way";
}

/// After close() and is_idle(), what the accesses wrote is there, and nothing more is written.
TEST(AccessPermit, ClosesWhileThreadsEnter) {
  for (std::uint32_t generation = 1; generation <= 100; ++generation) {
    AccessPermit::Word word{0};
    const AccessPermit permit(word);
    int memory[2][64] = {};  // plain: the thread sanitizer watches it
    permit.open(generation);
    std::atomic<int> begun{0};
    const auto access = [&](int* mine) {
      begun.fetch_add(1);
      while (permit.enter(generation)) {
        for (int i = 0; i < 64; ++i) ++mine[i];
        permit.leave();
      }
    };
    std::thread first(access, memory[0]), second(access, memory[1]);
    while (begun != 2) std::this_thread::yield();
    permit.close();
    while (!permit.is_idle(generation)) std::this_thread::yield();
    for (const auto& of : memory) {
      EXPECT_TRUE(std::all_of(std::begin(of), std::end(of), [&](int one) { return one == of[0]; }));
      std::fill(std::begin(memory[0]), std::end(memory[0]), -1);
    }
    first.join();
    second.join();
    EXPECT_EQ(memory[0][0], -1);
  }
}

constexpr std::size_t window = 1 << 20;

/// Rank 1 has memory, and rank 0 its key.
class DirectAccess : public testing::Test {
 protected:
  DirectAccess() : job_({2, {comm::find_driver("self"), comm::find_driver("shm")}, "aggregate", {}}), memory_(window) {
    EXPECT_EQ(canele_memory_register(job_.handle(1), memory_.data(), window, nullptr, &registered_), CANELE_OK);
    key_ = open_key(registered_);
  }
  ~DirectAccess() override {
    EXPECT_EQ(canele_key_close(key_), CANELE_OK) << canele_error_detail();
    if (registered_ != nullptr) {
      EXPECT_EQ(canele_memory_free(registered_), CANELE_OK);
    }
  }

  canele_key_t* open_key(const canele_memory_t* memory) {
    unsigned char bytes[CANELE_KEY_SIZE];
    canele_key_t* key = nullptr;
    EXPECT_EQ(canele_memory_key(memory, bytes), CANELE_OK);
    EXPECT_EQ(canele_key_open(job_.handle(0), bytes, &key), CANELE_OK) << canele_error_detail();
    return key;
  }
  int access(canele_key_t* key, bool write, std::uint64_t offset, std::vector<std::uint8_t>& bytes,
             canele_request_t* request) {
    const canele_data_t data = canele_data_contiguous(bytes.data(), bytes.size());
    return write ? canele_put(key, offset, &data, nullptr, request) : canele_get(key, offset, &data, nullptr, request);
  }
  /// Makes an access, and flushes. Returns the error.
  int whole(canele_key_t* key, bool write, std::uint64_t offset, std::vector<std::uint8_t>& bytes) {
    canele_request_t request{};
    EXPECT_EQ(access(key, write, offset, bytes, &request), CANELE_OK) << canele_error_detail();
    EXPECT_TRUE(job_.finish(request));
    canele_request_t flush{};
    EXPECT_EQ(canele_flush(job_.handle(0), 1, nullptr, &flush), CANELE_OK);
    EXPECT_TRUE(job_.finish(flush));
    return status_of(request).error;
  }
  std::uint64_t direct() { return job_.engine(0).counters.read(Counter::accesses_direct); }
  /// Makes the first access by the key, and waits for the permission. Skips the test where no driver can.
  void meet() {
    std::vector<std::uint8_t> bytes(8);
    ASSERT_EQ(whole(key_, false, 0, bytes), CANELE_OK);
    const auto& key = *reinterpret_cast<const comm::one_sided::RemoteKey*>(key_);
    if (!job_.engine(0).instances.back()->driver->capabilities().get) GTEST_SKIP() << "no cross-memory attach here";
    ASSERT_TRUE(job_.until([&] { return key.direct.load() != nullptr; }));
  }

  LocalJob job_;
  std::vector<std::uint8_t> memory_;
  canele_memory_t* registered_ = nullptr;
  canele_key_t* key_ = nullptr;
};

TEST_F(DirectAccess, EndsWithinItsPost) {
  meet();
  std::vector<std::uint8_t> bytes(10'000);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{1});
  std::uint64_t made = direct();
  for (std::uint64_t offset = 0; offset < window - bytes.size(); offset += 33'333) {
    ++bytes[0];
    ASSERT_EQ(access(key_, true, offset, bytes, nullptr), CANELE_OK);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), memory_.begin() + static_cast<std::ptrdiff_t>(offset)));
    std::vector<std::uint8_t> back(bytes.size());
    canele_request_t request{};
    ASSERT_EQ(access(key_, false, offset, back, &request), CANELE_OK);
    int done = 0;
    EXPECT_EQ(canele_test(&request, &done, nullptr), CANELE_OK);
    EXPECT_EQ(done, 1);
    EXPECT_EQ(back, bytes);
    EXPECT_EQ(direct(), made += 2);
  }
}

TEST_F(DirectAccess, OfPieces) {
  meet();
  std::vector<std::uint8_t> bytes(40'000);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{3});
  std::vector<iovec> pieces;  // more than one system call takes
  for (std::size_t at = 0; at < bytes.size(); at += 100) pieces.push_back({bytes.data() + at, 100});
  const canele_iov_t vector{pieces.data(), static_cast<int>(pieces.size())};
  const canele_data_t data = canele_data_iov(&vector);
  const std::uint64_t made = direct();
  ASSERT_EQ(canele_put(key_, 16, &data, nullptr, nullptr), CANELE_OK);
  EXPECT_EQ(direct(), made + 1);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), memory_.begin() + 16));
}

/// A short operation goes by itself only if it is the first one since a flush; one among others goes in a packet.
TEST_F(DirectAccess, ShortOnesAmongOthersGoInPackets) {
  meet();
  std::vector<std::uint8_t> bytes(8, 1);
  const std::uint64_t made = direct();
  for (int i = 0; i < 10; ++i) ASSERT_EQ(whole(key_, true, 0, bytes), CANELE_OK);
  EXPECT_EQ(direct(), made + 10);
  for (int i = 0; i < 10; ++i) ASSERT_EQ(access(key_, true, 0, bytes, nullptr), CANELE_OK);
  EXPECT_EQ(direct(), made + 11);
  std::vector<std::uint8_t> large(5000, 2);  // must not overtake the packets
  canele_request_t request{};
  ASSERT_EQ(access(key_, true, 0, large, &request), CANELE_OK);
  EXPECT_EQ(direct(), made + 11);
  ASSERT_TRUE(job_.finish(request));
  EXPECT_EQ(memory_[0], 2);
}

TEST_F(DirectAccess, RevokedMemoryIsNotTouched) {
  meet();
  std::vector<std::uint8_t> bytes(5000, 1);
  ASSERT_EQ(whole(key_, true, 0, bytes), CANELE_OK);
  ASSERT_EQ(canele_memory_free(std::exchange(registered_, nullptr)), CANELE_OK);
  std::fill(memory_.begin(), memory_.end(), std::uint8_t{7});
  const std::uint64_t made = direct();
  for (const bool write : {true, false}) EXPECT_EQ(whole(key_, write, 0, bytes), CANELE_EREVOKED);
  EXPECT_EQ(direct(), made);
  EXPECT_TRUE(std::all_of(memory_.begin(), memory_.end(), [](std::uint8_t one) { return one == 7; }));
}

/// A key that claims more than the memory has: the driver's own key has the true length.
TEST_F(DirectAccess, StaysWithinTheMemory) {
  constexpr std::size_t length_at = 24;
  unsigned char bytes[CANELE_KEY_SIZE];
  ASSERT_EQ(canele_memory_key(registered_, bytes), CANELE_OK);
  const std::uint64_t more = 2 * window;
  std::copy_n(reinterpret_cast<const unsigned char*>(&more), sizeof more, bytes + length_at);
  canele_key_t* key = nullptr;
  ASSERT_EQ(canele_key_open(job_.handle(0), bytes, &key), CANELE_OK);
  std::vector<std::uint8_t> data(5000);
  ASSERT_EQ(whole(key, false, 0, data), CANELE_OK);
  job_.until([&] { return reinterpret_cast<comm::one_sided::RemoteKey*>(key)->direct.load() != nullptr; });
  for (const std::uint64_t offset : {std::uint64_t{window - 4999}, std::uint64_t{window}, std::uint64_t{more - 5000}}) {
    for (const bool write : {true, false}) EXPECT_EQ(whole(key, write, offset, data), CANELE_EACCESS);
  }
  EXPECT_EQ(canele_key_close(key), CANELE_OK);
}

/// A key that does not allow to write gets no driver's key for it.
TEST_F(DirectAccess, OfTheKindsThatAreAllowed) {
  canele_memory_options_t options{};
  options.struct_size = sizeof options;
  options.access = CANELE_ACCESS_READ;
  std::vector<std::uint8_t> memory(10'000, 5), bytes(10'000);
  canele_memory_t* readable = nullptr;
  ASSERT_EQ(canele_memory_register(job_.handle(1), memory.data(), memory.size(), &options, &readable), CANELE_OK);
  canele_key_t* key = open_key(readable);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(whole(key, false, 0, bytes), CANELE_OK);
  EXPECT_EQ(bytes, memory);
  EXPECT_EQ(access(key, true, 0, bytes, nullptr), CANELE_EACCESS);
  if (const auto* direct = reinterpret_cast<comm::one_sided::RemoteKey*>(key)->direct.load(); direct != nullptr) {
    EXPECT_NE(direct->get.size, 0);
    EXPECT_EQ(direct->put.size, 0);
  }
  EXPECT_EQ(canele_key_close(key), CANELE_OK);
  EXPECT_EQ(canele_memory_free(readable), CANELE_OK);
}

/// More regions than there are words for permits: the others are accessed by packets. Closed keys give theirs back.
TEST_F(DirectAccess, MoreRegionsThanPermits) {
  meet();
  constexpr int count = 600;
  std::vector<canele_memory_t*> regions(count);
  for (int round = 0; round < 2; ++round) {
    std::vector<canele_key_t*> keys(count);
    std::vector<std::uint8_t> bytes(2000);
    for (int i = 0; i < count; ++i) {
      std::uint8_t* const base = memory_.data() + 1000 * i;
      auto& region = regions[static_cast<std::size_t>(i)];
      ASSERT_EQ(canele_memory_register(job_.handle(1), base, 2000, nullptr, &region), CANELE_OK);
      keys[static_cast<std::size_t>(i)] = open_key(region);
      ASSERT_EQ(whole(keys[static_cast<std::size_t>(i)], false, 0, bytes), CANELE_OK);
    }
    const std::uint64_t made = direct();
    for (canele_key_t* const key : keys) {
      std::fill(bytes.begin(), bytes.end(), static_cast<std::uint8_t>(round + 1));
      ASSERT_EQ(whole(key, true, 0, bytes), CANELE_OK);
    }
    EXPECT_GT(direct() - made, 50u);
    EXPECT_LT(direct() - made, std::uint64_t{count});
    EXPECT_EQ(std::count(memory_.begin(), memory_.begin() + 601'000, round + 1), 601'000);
    for (std::size_t i = 0; i < count; ++i) {  // half of the memory goes before its key
      if (i % 2 != 0) {
        EXPECT_EQ(canele_key_close(keys[i]), CANELE_OK);
      }
      ASSERT_EQ(canele_memory_free(regions[i]), CANELE_OK);
      if (i % 2 == 0) {
        EXPECT_EQ(canele_key_close(keys[i]), CANELE_OK);
      }
    }
  }
}

/// A key is closed before the target has answered its attach, and another one gets its index: the answer is not for it.
TEST_F(DirectAccess, AnswersThatComeTooLateAreIgnored) {
  meet();
  std::vector<std::uint8_t> bytes(8, 1), other(10'000), large(5000, 4);
  canele_memory_t* memory = nullptr;
  ASSERT_EQ(canele_memory_register(job_.handle(1), other.data(), other.size(), nullptr, &memory), CANELE_OK);
  canele_key_t* const first = open_key(registered_);
  ASSERT_EQ(access(first, true, 0, bytes, nullptr), CANELE_OK);  // over for the key as soon as it has left
  ASSERT_EQ(canele_key_close(first), CANELE_OK) << canele_error_detail();
  canele_key_t* const second = open_key(memory);
  ASSERT_EQ(access(second, true, 0, bytes, nullptr), CANELE_OK);
  const auto& key = *reinterpret_cast<const comm::one_sided::RemoteKey*>(second);
  EXPECT_EQ(key.index, 2u) << "the index of the first one";
  ASSERT_TRUE(job_.until([&] { return key.direct.load() != nullptr; }));
  ASSERT_EQ(whole(second, false, 0, bytes), CANELE_OK);
  const std::uint64_t made = direct();
  ASSERT_EQ(whole(second, true, 100, large), CANELE_OK);
  EXPECT_EQ(direct(), made + 1);
  EXPECT_EQ(std::count(other.begin(), other.end(), 4), 5000);
  EXPECT_EQ(std::count(memory_.begin(), memory_.end(), 4), 0);
  EXPECT_EQ(canele_key_close(second), CANELE_OK);
  EXPECT_EQ(canele_memory_free(memory), CANELE_OK);
}

/// Memory is freed while a thread writes to it: from then on nothing is written.
TEST_F(DirectAccess, MemoryIsFreedDuringAccesses) {
  meet();
  std::atomic<bool> writes{false};
  std::thread origin([&] {
    std::vector<std::uint8_t> bytes(100'000, 1);
    const auto& key = *reinterpret_cast<const comm::one_sided::RemoteKey*>(key_);
    for (; key.direct.load() != nullptr; writes = true) EXPECT_EQ(access(key_, true, 0, bytes, nullptr), CANELE_OK);
  });
  while (!writes) std::this_thread::yield();
  ASSERT_EQ(canele_memory_free(std::exchange(registered_, nullptr)), CANELE_OK);
  std::fill(memory_.begin(), memory_.end(), std::uint8_t{7});
  origin.join();
  EXPECT_EQ(std::count(memory_.begin(), memory_.end(), 7), std::ptrdiff_t{window});
  canele_request_t flush{};
  ASSERT_EQ(canele_flush(job_.handle(0), 1, nullptr, &flush), CANELE_OK);
  ASSERT_TRUE(job_.finish(flush));
  EXPECT_EQ(status_of(flush).error, CANELE_EREVOKED);
}

/// The target is gone: the key permits nothing any more, and operations end with an error.
TEST_F(DirectAccess, EndsWithTheTarget) {
  meet();
  job_.destroy(1);
  delete reinterpret_cast<comm::one_sided::Region*>(std::exchange(registered_, nullptr));  // its engine is gone
  const auto& key = *reinterpret_cast<const comm::one_sided::RemoteKey*>(key_);
  ASSERT_TRUE(job_.until([&] { return key.direct.load() == nullptr; }));
  std::vector<std::uint8_t> bytes(5000);
  canele_request_t request{};
  ASSERT_EQ(access(key_, true, 0, bytes, &request), CANELE_OK);
  ASSERT_TRUE(job_.finish(request));
  EXPECT_EQ(status_of(request).error, CANELE_EPEER);
}

}  // namespace
}  // namespace canele::test::direct_access
