// SPDX-License-Identifier: BSD-3-Clause
//
// Memory of stored messages: blocks do not overlap, a burst gives its slabs back, large messages take what they need.
//
// One thread. The pool's own count of slabs is trusted here; canele-perf flood asks the kernel.
#include "comm/state/message_pool.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

namespace canele::comm {
namespace {

constexpr std::size_t per_slab = MessagePool::slab_size / MessagePool::block_sizes.front();

Message& keep(MessagePool& pool, std::uint32_t bytes, std::uint8_t fill) {
  Message* const message = pool.make(bytes);
  if (message == nullptr) throw std::bad_alloc();
  message->stored = bytes;
  message->tag = fill;
  std::memset(message->bytes(), fill, bytes);
  return *message;
}

bool is_whole(Message& message) {
  return std::all_of(message.bytes(), message.bytes() + message.stored,
                     [&](std::byte one) { return one == static_cast<std::byte>(message.tag); });
}

TEST(MessagePool, GivesSlabsBackAfterABurstInWhateverOrder) {
  if (!MessagePool::in_slabs) GTEST_SKIP() << "a sanitizer has its own heap";
  MessagePool pool;
  std::mt19937_64 random(1);
  for (int burst = 0; burst < 3; ++burst) {
    std::vector<Message*> kept;
    for (std::size_t i = 0; i < 3 * per_slab; ++i) kept.push_back(&keep(pool, 8, static_cast<std::uint8_t>(i)));
    EXPECT_GE(pool.slabs(), 3u);
    EXPECT_LE(pool.slabs(), 4u);
    std::shuffle(kept.begin(), kept.end(), random);
    for (Message* message : kept) {
      ASSERT_TRUE(is_whole(*message));
      pool.release(*message);
    }
    EXPECT_EQ(pool.slabs(), 1u);
  }
}

TEST(MessagePool, KeepsMessagesApart) {
  MessagePool pool;
  std::mt19937_64 random(2);
  std::vector<Message*> kept;
  const std::size_t most = MessagePool::block_sizes.back() - sizeof(Message);
  for (int i = 0; i < 40'000; ++i) {
    if (kept.size() < 100 || random() % 3 != 0) {
      const std::size_t length = random() % 16 == 0 ? random() % 5000 : random() % (most + 1);
      kept.push_back(&keep(pool, static_cast<std::uint32_t>(length), static_cast<std::uint8_t>(random())));
    } else {
      std::swap(kept[random() % kept.size()], kept.back());
      ASSERT_TRUE(is_whole(*kept.back()));
      pool.release(*kept.back());
      kept.pop_back();
    }
  }
  for (Message* message : kept) {
    ASSERT_TRUE(is_whole(*message));
    pool.release(*message);
  }
  EXPECT_EQ(pool.slabs(), MessagePool::in_slabs ? MessagePool::block_sizes.size() : 0u);  // a spare of each kind
}

TEST(MessagePool, UsesARecentBlockAgain) {
  if (!MessagePool::in_slabs) GTEST_SKIP() << "a sanitizer has its own heap";
  MessagePool pool;
  Message& first = keep(pool, 8, 1);
  pool.release(first);
  for (int i = 0; i < 100'000; ++i) pool.release(keep(pool, 8, 1));
  EXPECT_EQ(pool.slabs(), 1u);
  EXPECT_EQ(&keep(pool, 8, 2), &first);
  pool.release(first);
}

TEST(MessagePool, AsksTheSystemSeldomAtTheEdgeOfASlab) {
  if (!MessagePool::in_slabs) GTEST_SKIP() << "a sanitizer has its own heap";
  MessagePool pool;
  std::vector<Message*> kept;
  while (pool.slabs() < 2) kept.push_back(&keep(pool, 8, 1));
  for (int i = 0; i < 1000; ++i) {
    pool.release(*kept.back());
    EXPECT_EQ(pool.slabs(), 2u);
    kept.back() = &keep(pool, 8, 1);
    EXPECT_EQ(pool.slabs(), 2u);
  }
  for (Message* message : kept) pool.release(*message);
  EXPECT_EQ(pool.slabs(), 1u);
}

/// Memory that AddressSanitizer and valgrind would otherwise report as lost.
TEST(MessagePool, EndsWithSmallMessagesInIt) {
  if (!MessagePool::in_slabs) GTEST_SKIP() << "a sanitizer has its own heap";
  std::vector<std::uintptr_t> pages;
  {
    MessagePool pool;
    for (std::size_t i = 0; i < 2 * per_slab + 1; ++i) {  // two full slabs, and one that is not
      pages.push_back(reinterpret_cast<std::uintptr_t>(&keep(pool, 8, 1)) & ~std::uintptr_t{4095});
    }
    EXPECT_EQ(pool.slabs(), 3u);
  }
  for (const std::uintptr_t page : {pages.front(), pages.back()}) {
    unsigned char there = 0;
    EXPECT_EQ(mincore(reinterpret_cast<void*>(page), 4096, &there), -1) << "still mapped";
  }
}

TEST(MessagePool, TakesNothingBeforeTheFirstMessage) { EXPECT_EQ(MessagePool().slabs(), 0u); }

}  // namespace
}  // namespace canele::comm
