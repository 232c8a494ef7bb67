// SPDX-License-Identifier: BSD-3-Clause
//
// The handle pool: what a handle finds, and when it is stale.
#include "starpu_glue/mpi/core/handles.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace {

using canele::mpi::handle_bits;
using canele::mpi::HandlePool;
using canele::mpi::Kind;
using canele::mpi::to_handle;

MPI_Request make_handle(Kind kind, unsigned index) {
  return to_handle<MPI_Request>(canele::mpi::make_word(kind, index));
}

struct Item {
  std::atomic<int> owner{0};
};
using Pool = HandlePool<Item, MPI_Request, Kind::request, 3, 64>;

TEST(Handles, FindsWhatWasAcquired) {
  static Pool pool;
  MPI_Request handle = nullptr;
  Item* item = pool.acquire(&handle);
  ASSERT_NE(item, nullptr);
  EXPECT_GE(handle_bits(handle), std::size_t{1} << 27);
  EXPECT_EQ(pool.find(handle), item);
  pool.release(handle);
  EXPECT_EQ(pool.find(handle), nullptr);
}

TEST(Handles, StaleHandleDoesNotFindTheNextOwner) {
  static Pool pool;
  MPI_Request first = nullptr;
  MPI_Request second = nullptr;
  Item* a = pool.acquire(&first);
  pool.release(first);
  Item* b = pool.acquire(&second);
  EXPECT_EQ(a, b);  // the slot is used again
  EXPECT_NE(first, second);
  EXPECT_EQ(pool.find(first), nullptr);
  EXPECT_EQ(pool.find(second), b);
}

TEST(Handles, RejectsOtherKindsReservedAndUnknownIndexes) {
  static Pool pool;
  MPI_Request handle = nullptr;
  pool.acquire(&handle);
  EXPECT_EQ(pool.find(nullptr), nullptr);
  EXPECT_EQ(pool.find(to_handle<MPI_Request>(-1)), nullptr);
  EXPECT_EQ(pool.find(reinterpret_cast<MPI_Request>(~std::uintptr_t{0})), nullptr);
  for (int bit = 32; bit < 64; ++bit) {
    const std::uintptr_t upper = std::uintptr_t{1} << bit;
    EXPECT_EQ(pool.find(reinterpret_cast<MPI_Request>(handle_bits(handle) | upper)), nullptr);
  }
  EXPECT_EQ(pool.find(make_handle(Kind::datatype, 3)), nullptr);
  for (unsigned index = 0; index < 3; ++index) EXPECT_EQ(pool.find(make_handle(Kind::request, index)), nullptr);
  EXPECT_EQ(pool.find(make_handle(Kind::request, 4)), nullptr);         // in the chunk, never given out
  EXPECT_EQ(pool.find(make_handle(Kind::request, 0xffffff)), nullptr);  // beyond all chunks
}

TEST(Handles, RunsOutWithoutHarm) {
  static HandlePool<Item, int, Kind::keyval, 2, 1> pool;
  std::vector<int> handles;
  int handle = 0;
  while (pool.acquire(&handle) != nullptr) handles.push_back(handle);
  EXPECT_EQ(handles.size(), 510u);
  EXPECT_EQ(std::set<int>(handles.begin(), handles.end()).size(), handles.size());
  for (int used : handles) pool.release(used);
  for (std::size_t i = 0; i < handles.size(); ++i) EXPECT_NE(pool.acquire(&handle), nullptr);
  EXPECT_EQ(pool.acquire(&handle), nullptr);
}

TEST(Handles, PredefinedOnesMayBeBeyondTheFirstChunk) {
  static HandlePool<Item, MPI_Datatype, Kind::datatype, 0x2ec, 2> pool;
  const auto known = to_handle<MPI_Datatype>(0x2eb), other = to_handle<MPI_Datatype>(0x1ff);
  Item* predefined = pool.reserved(known);
  ASSERT_NE(predefined, nullptr);
  pool.open(*predefined);
  EXPECT_EQ(pool.find(known), predefined);
  EXPECT_EQ(pool.find(other), nullptr);
  EXPECT_EQ(pool.used(), 0u);
  MPI_Datatype handle = nullptr;
  int made = 0;
  for (; Item* item = pool.acquire(&handle); ++made) EXPECT_EQ(pool.find(handle), item);
  EXPECT_EQ(made, 1024 - 0x2ec);
}

TEST(Handles, AFreeObjectHasNoHandleUntilItIsOpened) {
  static Pool pool;
  Item* item = pool.take();
  ASSERT_NE(item, nullptr);
  const MPI_Request first = Pool::open(*item);
  EXPECT_EQ(pool.find(first), item);
  EXPECT_EQ(Pool::handle_of(*item), first);
  Pool::close(*item);
  EXPECT_EQ(pool.find(first), nullptr);
  const MPI_Request second = Pool::open(*item);  // the keeper uses it again, without the pool
  EXPECT_NE(first, second);
  EXPECT_EQ(pool.find(second), item);
  EXPECT_EQ(pool.find(first), nullptr);
  Pool::close(*item);
  pool.give(*item);
  EXPECT_EQ(pool.take(), item);
  EXPECT_EQ(pool.used(), 1u);
}

TEST(Handles, GenerationsComeRoundWithinTheirBits) {
  static Pool pool;
  std::set<MPI_Request> handles;
  MPI_Request handle = nullptr;
  for (int i = 0; i < 40; ++i) {
    pool.acquire(&handle);
    const auto word = static_cast<int>(handle_bits(handle));
    EXPECT_EQ(word >> canele::mpi::kKindShift, static_cast<int>(Kind::request));
    EXPECT_EQ(canele::mpi::word_index(word), 3u);
    handles.insert(handle);
    EXPECT_EQ(pool.find(to_handle<MPI_Request>(~word)), nullptr);
    pool.release(handle);
    EXPECT_EQ(pool.find(to_handle<MPI_Request>(~word)), nullptr);
  }
  EXPECT_EQ(handles.size(), 8u);
}

TEST(Handles, PredefinedOnesAreFoundOnceTheyAreOpen) {
  static Pool pool;
  const MPI_Request known = to_handle<MPI_Request>(2);
  Item* predefined = pool.reserved(known);
  ASSERT_NE(predefined, nullptr);
  EXPECT_EQ(pool.find(known), nullptr);
  EXPECT_EQ(Pool::open(*predefined), known);
  EXPECT_EQ(pool.find(known), predefined);
  EXPECT_EQ(pool.find(make_handle(Kind::request, 2)), nullptr);
  MPI_Request handle = nullptr;
  EXPECT_NE(pool.acquire(&handle), predefined);
}

TEST(Handles, SomeAreTakenAndGivenAtOnce) {
  static Pool pool;
  std::vector<Item*> items;
  const auto keep = [&](Item& item) { items.push_back(&item); };
  EXPECT_EQ(pool.take_some(4, keep), 0);  // none was given back
  for (int i = 0; i < 6; ++i) items.push_back(pool.take());
  const std::set<Item*> all(items.begin(), items.end());
  pool.give_some(6, [&]() -> Item& {
    Item* item = items.back();
    items.pop_back();
    return *item;
  });
  EXPECT_EQ(pool.take_some(4, keep), 4);
  EXPECT_EQ(pool.take_some(4, keep), 2);
  EXPECT_EQ(std::set<Item*>(items.begin(), items.end()), all);
  EXPECT_EQ(pool.take_some(4, keep), 0);
  EXPECT_EQ(pool.used(), 6u);
}

TEST(Handles, ThreadsThatTakeAndGiveSomeNeverShareAnItem) {
  static Pool pool;
  std::atomic<int> shared{0};
  std::vector<std::thread> threads;
  for (int id = 1; id <= 4; ++id) {
    threads.emplace_back([id, &shared] {
      std::vector<Item*> mine;
      for (int round = 0; round < 5000; ++round) {
        const int wanted = 1 + (round * id) % 7;
        int taken = pool.take_some(wanted, [&](Item& item) { mine.push_back(&item); });
        for (; taken < wanted; ++taken) mine.push_back(pool.take());
        for (Item* item : mine) {
          if (item->owner.exchange(id) != 0) shared.fetch_add(1);
        }
        for (Item* item : mine) {
          if (item->owner.exchange(0) != id) shared.fetch_add(1);
        }
        pool.give_some(wanted, [&]() -> Item& {
          Item* item = mine.back();
          mine.pop_back();
          return *item;
        });
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(shared.load(), 0);
  EXPECT_LE(pool.used(), 4u * 7 * 2);
}

TEST(Handles, EachLiveObjectIsVisited) {
  static Pool pool;
  MPI_Request handles[5];
  for (MPI_Request& handle : handles) pool.acquire(&handle)->owner.store(1);
  pool.release(handles[1]);
  pool.release(handles[4]);
  int visited = 0;
  pool.each_live([&](Item& item) { visited += item.owner.load(); });
  EXPECT_EQ(visited, 3);
}

TEST(Handles, EightThreadsNeverShareAnItem) {
  static Pool pool;
  constexpr int kThreads = 8;
  constexpr int kRounds = 20000;
  std::atomic<int> shared{0};
  std::vector<std::thread> threads;
  for (int id = 1; id <= kThreads; ++id) {
    threads.emplace_back([id, &shared] {
      MPI_Request handles[4];
      for (int round = 0; round < kRounds; ++round) {
        for (MPI_Request& handle : handles) {
          Item* item = pool.acquire(&handle);
          if (item == nullptr || item->owner.exchange(id) != 0) shared.fetch_add(1);
        }
        for (MPI_Request handle : handles) {
          Item* item = pool.find(handle);
          if (item == nullptr || item->owner.exchange(0) != id) shared.fetch_add(1);
          pool.release(handle);
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(shared.load(), 0);
}

}  // namespace
