// SPDX-License-Identifier: BSD-3-Clause
//
// The reserve of memory: what it gives, when it reports that little is left, and that no block has two owners.
#include "ltask/reserve.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <set>
#include <thread>
#include <vector>

namespace canele::ltask {
namespace {

std::atomic<bool> system_has_memory{true};

using Kind = MemoryReserve::Kind;
constexpr std::align_val_t line{MemoryReserve::cache_line};

void* allocate(std::size_t size, Kind kind) {
  if (!system_has_memory) return nullptr;
  if (kind == Kind::array) return ::operator new[](size, std::nothrow);
  return kind == Kind::aligned ? ::operator new(size, line, std::nothrow) : ::operator new(size, std::nothrow);
}

std::size_t blocks_of(const auto& classes) {
  std::size_t all = 0;
  for (const MemoryReserve::Class& one : classes) all += one.count;
  return all;
}

/// Takes every block of a kind that is left.
std::vector<void*> empty(MemoryReserve& reserve, Kind kind) {
  std::vector<void*> all;
  for (void* block = reserve.take(1, kind); block != nullptr; block = reserve.take(1, kind)) all.push_back(block);
  return all;
}

class Reserve : public testing::Test {
 protected:
  Reserve() { system_has_memory = true; }
  ~Reserve() override {
    system_has_memory = false;
    for (void* block : empty(*reserve, Kind::plain)) ::operator delete(block);
    for (void* block : empty(*reserve, Kind::array)) ::operator delete[](block);
    for (void* block : empty(*reserve, Kind::aligned)) ::operator delete(block, line);
  }
  std::unique_ptr<MemoryReserve> reserve = std::make_unique<MemoryReserve>(allocate);
};

TEST_F(Reserve, IsEmptyUntilItIsFilled) {
  EXPECT_TRUE(reserve->is_short());
  EXPECT_FALSE(reserve->is_scarce());
  EXPECT_EQ(nullptr, reserve->take(8, Kind::plain));
  EXPECT_TRUE(reserve->is_scarce());
  EXPECT_TRUE(reserve->refill());
  EXPECT_FALSE(reserve->is_short());
  EXPECT_FALSE(reserve->is_scarce());
}

TEST_F(Reserve, GivesEachBlockOnce) {
  ASSERT_TRUE(reserve->refill());
  const std::vector<void*> all = empty(*reserve, Kind::plain);
  EXPECT_EQ(blocks_of(MemoryReserve::plain), all.size());
  EXPECT_EQ(all.size(), std::set<void*>(all.begin(), all.end()).size());
  for (void* block : all) ::operator delete(block);
}

TEST_F(Reserve, GivesBlocksThatAreLargeEnough) {
  ASSERT_TRUE(reserve->refill());
  for (const std::size_t size : {std::size_t{1}, std::size_t{129}, std::size_t{5000}, std::size_t{131072}}) {
    auto* const block = static_cast<char*>(reserve->take(size, Kind::plain));
    ASSERT_NE(nullptr, block) << size;
    std::fill(block, block + size, 'x');  // AddressSanitizer sees what is beyond
    ::operator delete(block);
  }
  EXPECT_EQ(nullptr, reserve->take(131073, Kind::plain));
}

TEST_F(Reserve, GivesAlignedBlocks) {
  ASSERT_TRUE(reserve->refill());
  void* const block = reserve->take(700, Kind::aligned);
  ASSERT_NE(nullptr, block);
  EXPECT_EQ(0u, reinterpret_cast<std::uintptr_t>(block) % MemoryReserve::cache_line);
  ::operator delete(block, line);
}

TEST_F(Reserve, GivesArraysFromTheirOwnOperator) {
  ASSERT_TRUE(reserve->refill());
  void* const block = reserve->take(60'000, Kind::array);
  ASSERT_NE(nullptr, block);
  ::operator delete[](block);  // AddressSanitizer sees a wrong pair
}

TEST_F(Reserve, SaysWhenLittleIsLeft) {
  ASSERT_TRUE(reserve->refill());
  system_has_memory = false;
  std::size_t taken = 0;
  while (!reserve->is_scarce()) {
    ::operator delete(reserve->take(100, Kind::plain));
    ++taken;
    EXPECT_TRUE(reserve->is_short());
  }
  EXPECT_EQ(MemoryReserve::plain[0].count - MemoryReserve::plain[0].scarce, taken);
  EXPECT_FALSE(reserve->refill());
  EXPECT_TRUE(reserve->is_scarce());
  system_has_memory = true;
  EXPECT_TRUE(reserve->refill());
  EXPECT_FALSE(reserve->is_scarce());
}

TEST_F(Reserve, HasOneOwnerForEachBlockWhileThreadsTakeAndRefill) {
  ASSERT_TRUE(reserve->refill());
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([this] {
      for (int turn = 0; turn < 5000; ++turn) {
        auto* const block = static_cast<int*>(reserve->take(100, Kind::plain));
        if (block == nullptr) continue;
        *block = turn;  // ThreadSanitizer sees a second owner
        ::operator delete(block);
      }
    });
  }
  threads.emplace_back([&] {
    while (!over) reserve->refill();
  });
  for (int i = 0; i < 3; ++i) threads[static_cast<std::size_t>(i)].join();
  over = true;
  threads.back().join();
}

}  // namespace
}  // namespace canele::ltask
