// SPDX-License-Identifier: BSD-3-Clause
//
// The explorer alone: it runs as many orders as combinatorics says, and its memory is neither stronger nor weaker than
// that of x86, or than what C++ promises.
//
// Store buffering, in which both threads read the old values, is the one litmus test here that tells x86 from
// sequential consistency. Message passing tells ARM64 from x86.
#include <gtest/gtest.h>

#include <set>

#include "tests/exhaustive/schedules/stand_ins.hpp"

namespace canele::exhaustive {
namespace {

using Options = Explorer::Options;
using Word = std::atomic<int>;
constexpr auto relaxed = std::memory_order_relaxed;

/// Returns the number of orders of `threads` sequences of `steps` steps: (t s)! / s!^t.
std::uint64_t multinomial(std::uint64_t threads, std::uint64_t steps) {
  std::uint64_t orders = 1;
  for (std::uint64_t t = 2; t <= threads; ++t) {
    for (std::uint64_t s = 1; s <= steps; ++s) orders = orders * ((t - 1) * steps + s) / s;
  }
  return orders;
}

/// Every thread makes the same number of steps, all on one word.
template <int Threads, int Steps>
struct Contention {
  Contention() {
    for (int t = 0; t < Threads; ++t) {
      Explorer::current()->spawn([this] {
        for (int i = 0; i < Steps; ++i) word.fetch_add(1);
      });
    }
  }
  void check() { EXPECT_EQ(word.now(), Threads * Steps); }
  Word word{0};
};

TEST(ExplorerTest, RunsEveryOrderOfStepsThatDoNotCommute) {
  EXPECT_EQ((Explorer::explore<Contention<2, 1>>(Options()).worlds), multinomial(2, 1));
  EXPECT_EQ((Explorer::explore<Contention<2, 5>>(Options()).worlds), multinomial(2, 5));
  EXPECT_EQ((Explorer::explore<Contention<3, 3>>(Options()).worlds), multinomial(3, 3));
  EXPECT_EQ((Explorer::explore<Contention<4, 2>>(Options()).worlds), multinomial(4, 2));
  EXPECT_EQ(multinomial(3, 3), 1680u);
  // Without reduction, the first and the last step of a thread, which no other thread sees, are put in every order,
  // too.
  EXPECT_EQ((Explorer::explore<Contention<3, 1>>({Memory::in_sequence, false}).worlds), multinomial(3, 3));
}

/// Two threads on words of their own: all orders are equivalent.
struct Apart {
  Apart() {
    for (Word* word : {&a, &b}) {
      Explorer::current()->spawn([word] {
        for (int i = 0; i < 6; ++i) word->fetch_add(1);
      });
    }
  }
  void check() {}
  Word a{0}, b{0};
};

TEST(ExplorerTest, RunsOneOrderOfStepsThatCommute) {
  EXPECT_EQ(Explorer::explore<Apart>(Options()).worlds, 1u);
  EXPECT_EQ(Explorer::explore<Apart>({Memory::in_sequence, false}).worlds, multinomial(2, 8));
}

/// Two threads; each writes its word and reads the other's.
template <bool Fence>
struct StoreBuffering {
  StoreBuffering() {
    for (int t = 0; t < 2; ++t) {
      Explorer::current()->spawn([this, t] {
        words[t].store(1, relaxed);
        if (Fence) std::atomic_thread_fence(std::memory_order_seq_cst);
        seen[t] = words[1 - t].load(relaxed);
      });
    }
  }
  void check() { outcomes.insert(seen[0] * 2 + seen[1]); }
  Word words[2];
  int seen[2] = {};
  static std::set<int> outcomes;
};
template <bool Fence>
std::set<int> StoreBuffering<Fence>::outcomes;

template <typename World>
std::set<int> outcomes_of(const Options& options, std::uint64_t* worlds = nullptr) {
  World::outcomes.clear();
  const Explorer::Outcome outcome = Explorer::explore<World>(options);
  EXPECT_EQ(outcome.failure, "");
  if (worlds != nullptr) *worlds = outcome.worlds;
  return World::outcomes;
}

TEST(ExplorerTest, StoreBuffersDelayStoresUntilAFence) {
  const std::set<int> strong = {1, 2, 3}, weak = {0, 1, 2, 3};
  std::uint64_t worlds = 0;
  EXPECT_EQ(outcomes_of<StoreBuffering<false>>(Options(), &worlds), strong);
  EXPECT_EQ(worlds, 3u);  // of the four ways to order the two accesses of each word, one is a circle
  EXPECT_EQ(outcomes_of<StoreBuffering<false>>({Memory::store_buffers}, &worlds), weak);
  EXPECT_EQ(worlds, 4u);
  EXPECT_EQ((outcomes_of<StoreBuffering<true>>({Memory::store_buffers})), strong);
}

/// Message passing: what a thread writes first is seen first, if memory keeps the order.
template <std::memory_order Store = relaxed, std::memory_order Load = relaxed>
struct MessagePassing {
  MessagePassing() {
    Explorer::current()->spawn([this] {
      data.store(1, relaxed);
      flag.store(1, Store);
    });
    Explorer::current()->spawn([this] {
      seen = flag.load(Load) * 2;
      seen += data.load(relaxed);
    });
  }
  void check() { outcomes.insert(seen); }
  Word data, flag;
  int seen = 0;
  static std::set<int> outcomes;
};
template <std::memory_order Store, std::memory_order Load>
std::set<int> MessagePassing<Store, Load>::outcomes;

TEST(ExplorerTest, StoreBuffersKeepStoresInOrder) {
  EXPECT_EQ(outcomes_of<MessagePassing<>>({Memory::store_buffers}), (std::set<int>{0, 1, 3}));
}

TEST(ExplorerTest, ViewsShowStoresInAnyOrderWithoutReleaseAndAcquire) {
  constexpr auto acquire = std::memory_order_acquire, release = std::memory_order_release;
  const std::set<int> in_order = {0, 1, 3}, any = {0, 1, 2, 3};
  EXPECT_EQ(outcomes_of<MessagePassing<>>({Memory::views}), any);
  EXPECT_EQ((outcomes_of<MessagePassing<release, relaxed>>({Memory::views})), any);
  EXPECT_EQ((outcomes_of<MessagePassing<relaxed, acquire>>({Memory::views})), any);
  EXPECT_EQ((outcomes_of<MessagePassing<release, acquire>>({Memory::views})), in_order);
}

TEST(ExplorerTest, ViewsDelayStoresUntilAFence) {
  EXPECT_EQ(outcomes_of<StoreBuffering<false>>({Memory::views}), (std::set<int>{0, 1, 2, 3}));
  EXPECT_EQ(outcomes_of<StoreBuffering<true>>({Memory::views}), (std::set<int>{1, 2, 3}));
}

/// Store buffering, by an exchange and a load: on x86 the exchange is a fence, on ARM64 it is not.
template <std::memory_order Order>
struct Exchanges {
  Exchanges() {
    for (int t = 0; t < 2; ++t) {
      Explorer::current()->spawn([this, t] {
        words[t].exchange(1, std::memory_order_seq_cst);
        seen[t] = words[1 - t].load(Order);
      });
    }
  }
  void check() { outcomes.insert(seen[0] * 2 + seen[1]); }
  Word words[2];
  int seen[2] = {};
  static std::set<int> outcomes;
};
template <std::memory_order Order>
std::set<int> Exchanges<Order>::outcomes;

TEST(ExplorerTest, AnExchangeIsAFenceOnX86Only) {
  EXPECT_EQ(outcomes_of<Exchanges<relaxed>>({Memory::store_buffers}), (std::set<int>{1, 2, 3}));
  EXPECT_EQ(outcomes_of<Exchanges<relaxed>>({Memory::views}), (std::set<int>{0, 1, 2, 3}));
  EXPECT_EQ(outcomes_of<Exchanges<std::memory_order_seq_cst>>({Memory::views}), (std::set<int>{1, 2, 3}));
}

/// Two threads store to a word each; two others read both, in opposite orders.
template <std::memory_order Store, std::memory_order Load>
struct IndependentReads {
  IndependentReads() {
    for (int t = 0; t < 2; ++t) {
      Explorer::current()->spawn([this, t] { words[t].store(1, Store); });
      Explorer::current()->spawn([this, t] {
        seen[t] = words[t].load(Load) * 2;
        seen[t] += words[1 - t].load(Load);
      });
    }
  }
  void check() { outcomes.insert(seen[0] * 4 + seen[1]); }
  Word words[2];
  int seen[2] = {};
  static std::set<int> outcomes;
};
template <std::memory_order Store, std::memory_order Load>
std::set<int> IndependentReads<Store, Load>::outcomes;

TEST(ExplorerTest, OnlySequentialReadersAgreeOnTheOrderOfOthers) {
  constexpr int disagree = 2 * 4 + 2;
  using Acquires = IndependentReads<std::memory_order_release, std::memory_order_acquire>;
  using Sequential = IndependentReads<std::memory_order_seq_cst, std::memory_order_seq_cst>;
  EXPECT_EQ(outcomes_of<Acquires>({Memory::views}).count(disagree), 1u);
  EXPECT_EQ(outcomes_of<Sequential>({Memory::views}).count(disagree), 0u);
  EXPECT_EQ(outcomes_of<Acquires>({Memory::store_buffers}).count(disagree), 0u);
}

/// A word that two threads write, and a third one reads twice.
struct Coherence {
  Coherence() {
    Explorer::current()->spawn([this] { word.store(1, relaxed), word.store(2, relaxed); });
    Explorer::current()->spawn([this] {
      const int first = word.load(relaxed);
      seen = first * 10 + word.load(relaxed);
    });
  }
  void check() { outcomes.insert(seen); }
  Word word;
  int seen = 0;
  static std::set<int> outcomes;
};
std::set<int> Coherence::outcomes;

TEST(ExplorerTest, ViewsNeverGoBack) {
  EXPECT_EQ(outcomes_of<Coherence>({Memory::views}), (std::set<int>{0, 1, 2, 11, 12, 22}));
  EXPECT_EQ(outcomes_of<Coherence>({Memory::views, false}), (std::set<int>{0, 1, 2, 11, 12, 22}));
}

/// A spin lock, taken and released with these orders, around data that is not atomic.
template <std::memory_order Take, std::memory_order Leave>
struct Locking {
  Locking() {
    for (int t = 0; t < 2; ++t) {
      Explorer::current()->spawn([this] {
        while (lock.exchange(1, Take) != 0) Explorer::current()->yield();
        if (!Explorer::current()->touch(&data)) Explorer::current()->fail("not seen");
        lock.store(0, Leave);
      });
    }
  }
  void check() {}
  Word lock;
  int data = 0;
};

TEST(ExplorerTest, FindsALockThatDoesNotShowWhatItProtects) {
  constexpr auto acquire = std::memory_order_acquire, release = std::memory_order_release;
  EXPECT_EQ((Explorer::explore<Locking<acquire, release>>({Memory::views}).failure), "");
  EXPECT_NE((Explorer::explore<Locking<acquire, relaxed>>({Memory::views}).failure), "");
  EXPECT_NE((Explorer::explore<Locking<relaxed, release>>({Memory::views}).failure), "");
}

/// Three threads, two words and a lock.
struct Mixed {
  Mixed() {
    Explorer::current()->spawn([this] { a.store(1, relaxed), seen[0] = b.load(relaxed); });
    Explorer::current()->spawn([this] {
      const std::lock_guard guard(lock);
      b.store(++order, relaxed);
    });
    Explorer::current()->spawn([this] {
      const std::lock_guard guard(lock);
      seen[1] = a.load(relaxed) + 2 * ++order;
    });
  }
  void check() { outcomes.insert(seen[0] * 100 + seen[1] * 10 + order); }
  Word a, b;
  std::mutex lock;
  int order = 0, seen[2] = {};
  static std::set<int> outcomes;
};
std::set<int> Mixed::outcomes;

TEST(ExplorerTest, LosesNothingByReduction) {
  std::uint64_t reduced = 0, all = 0;
  const std::set<int> some = outcomes_of<Mixed>(Options(), &reduced);
  EXPECT_EQ(outcomes_of<Mixed>({Memory::in_sequence, false}, &all), some);
  EXPECT_EQ(outcomes_of<StoreBuffering<false>>({Memory::store_buffers, false}).size(), 4u);
  EXPECT_EQ(outcomes_of<StoreBuffering<true>>({Memory::store_buffers, false}).size(), 3u);
  EXPECT_EQ(outcomes_of<Mixed>({Memory::views}), outcomes_of<Mixed>({Memory::views, false}));
  EXPECT_EQ(outcomes_of<StoreBuffering<true>>({Memory::views, false}).size(), 3u);
  EXPECT_EQ(outcomes_of<MessagePassing<>>({Memory::views, false}).size(), 4u);
  EXPECT_GT(some.size(), 4u);
  EXPECT_LT(reduced, all / 10);
}

/// One thread waits for an event that the other never causes.
struct Stuck {
  Stuck() {
    Explorer::current()->spawn([this] {
      const std::function<bool()> set = [this] { return word.now() == 2; };
      Explorer::current()->step({"wait", &word, false, false, false}, &set);
    });
    Explorer::current()->spawn([this] { word.store(1); });
  }
  void check() {}
  Word word;
};
/// One thread polls without end, and the other does not come.
struct Endless {
  Endless() {
    Explorer::current()->spawn([this] {
      while (word.load() == 0) Explorer::current()->yield();
    });
  }
  void check() {}
  Word word;
};

TEST(ExplorerTest, TellsWhoStandsWhere) {
  EXPECT_NE(Explorer::explore<Stuck>(Options()).failure.find("thread 0 stands before: wait"), std::string::npos);
  EXPECT_NE(Explorer::explore<Endless>(Options()).failure.find("it does not end"), std::string::npos);
}

}  // namespace
}  // namespace canele::exhaustive
