// SPDX-License-Identifier: BSD-3-Clause
//
// The submission lock, the combining try-lock, the task queue, the sleeper, the parker and the worker, by many threads
// at once.
//
// Every stress test counts what must happen exactly once; none measures time.
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <thread>
#include <vector>

#include "ltask/parker.hpp"
#include "ltask/platform.hpp"
#include "ltask/sleeper.hpp"
#include "ltask/submit_lock.hpp"
#include "ltask/task.hpp"
#include "ltask/worker.hpp"
#include "ltask/write_quietly.hpp"

namespace canele::ltask {
namespace {

struct Post : SubmitLock::Node {
  int thread = 0, number = 0;
};

/// Posts from six threads. With a row, a thread that has run so many in a row may be the lock's owner.
void post_from_all_sides(std::uint32_t row) {
  constexpr int threads = 6, posts = 20'000;
  SubmitLock lock;
  lock.bias_after(row);
  std::vector<int> next(threads, 0);  // written by the holder only
  int inside = 0, wrong = 0;
  const auto run = [&](const Post& post) {
    wrong += ++inside != 1;
    wrong += next[static_cast<std::size_t>(post.thread)]++ != post.number;
    --inside;
  };
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      std::vector<Post> mine(posts);
      for (int i = 0; i < posts; ++i) {
        Post& post = mine[static_cast<std::size_t>(i)];
        post.thread = t;
        post.number = i;
        if (lock.lock_or_push(post) != SubmitLock::Entry::locked) continue;
        run(post);
        while (SubmitLock::Node* node = lock.unlock_or_take()) {
          for (; node != nullptr; node = node->next) run(static_cast<Post&>(*node));
        }
      }
      // the posts must outlive their holder: wait until all of mine have run
      for (;;) {
        if (lock.try_lock()) {
          const bool done = next[static_cast<std::size_t>(t)] == posts;
          while (SubmitLock::Node* node = lock.unlock_or_take()) {
            for (; node != nullptr; node = node->next) run(static_cast<Post&>(*node));
          }
          if (done) break;
        }
        std::this_thread::yield();
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_FALSE(lock.taken());
  EXPECT_EQ(std::count(next.begin(), next.end(), posts), threads);
}

TEST(SubmitLockTest, EveryPostRunsOnceInOrderPerThreadAndNoneIsStranded) { post_from_all_sides(0); }

/// A holder that finds very many linked nodes puts some of them in order, and may then leave the rest to another one.
TEST(SubmitLockTest, OneHolderDoesAPartOfWhatIsLinked) {
  constexpr int linked = 10'000, at_once = 64;
  SubmitLock lock;
  std::vector<Post> posts(linked);
  ASSERT_TRUE(lock.try_lock());
  for (int i = 0; i < linked; ++i) {
    posts[static_cast<std::size_t>(i)].number = i;
    ASSERT_EQ(lock.lock_or_push(posts[static_cast<std::size_t>(i)]), SubmitLock::Entry::linked);
  }
  int holders = 1, next = 0;
  while (lock.has_rest() || !lock.try_unlock()) {
    if (auto* const post = static_cast<Post*>(lock.next_linked())) {
      ASSERT_EQ(post->number, next++);
      continue;
    }
    ASSERT_EQ(next, 0) << "it is ordered before the first one is run";
    lock.put_down();
    ASSERT_TRUE(lock.try_inherit());
    ++holders;
  }
  EXPECT_EQ(next, linked);
  EXPECT_EQ(holders, (linked + at_once - 1) / at_once);
  EXPECT_FALSE(lock.taken());
}

TEST(SubmitLockTest, ThatIsSoWithOwners) {
  if (!AsymmetricFences::available()) GTEST_SKIP() << "no asymmetric fences: no membarrier(2), or ThreadSanitizer";
  for (int round = 0; round < 5; ++round) post_from_all_sides(4);
}

/// One thread takes the lock all the time, another now and then. Each time the other takes the bias away, until none is
/// given. The other begins when the first has the bias, however late that thread gets a core.
TEST(SubmitLockTest, AnOwnerIsDisturbedAndNeverSharesTheLock) {
  if (!AsymmetricFences::available()) GTEST_SKIP() << "no asymmetric fences: no membarrier(2), or ThreadSanitizer";
  SubmitLock lock;
  lock.bias_after(2);
  std::atomic<bool> over{false};
  long total = 0;  // changed inside only, by plain steps
  long mine = 0;
  std::atomic<bool> was_biased{false};
  std::thread owner([&] {
    while (!over.load(std::memory_order_relaxed)) {
      if (!lock.try_lock()) continue;
      ++total, ++mine;
      if (lock.biased()) was_biased.store(true, std::memory_order_relaxed);
      EXPECT_EQ(lock.unlock_or_take(), nullptr);
    }
  });
  while (!was_biased.load(std::memory_order_relaxed)) std::this_thread::yield();
  long others = 0;
  while (others < 2000) {
    if (!lock.try_lock()) continue;
    ++total, ++others;
    EXPECT_EQ(lock.unlock_or_take(), nullptr);
    for (int pause = 0; pause < 200; ++pause) posix_platform().relax();
  }
  over = true;
  owner.join();
  EXPECT_EQ(total, mine + others);
}

TEST(CombiningTryLockTest, EveryThreadThatDelegatesIsServed) {
  constexpr int threads = 4, rounds = 50'000;
  CombiningTryLock lock;
  std::atomic<int> wanted{0};
  int served = 0, inside = 0, wrong = 0;
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&] {
      for (int i = 0; i < rounds; ++i) {
        wanted.fetch_add(1);
        if (!lock.try_lock_or_delegate()) continue;
        do {
          wrong += ++inside != 1;
          served = wanted.load();
          --inside;
        } while (lock.unlock_or_repeat());
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(served, threads * rounds) << "the last one turned away was not served";
}

struct Counted : Task {
  std::atomic<int> runs{0};
  static void run(Task& task) { static_cast<Counted&>(task).runs.fetch_add(1, std::memory_order_relaxed); }
};

TEST(TaskQueueTest, EachTaskRunsExactlyOncePerSubmission) {
  constexpr int submitters = 3, runners = 3, per_submitter = 20'000;
  TaskQueue queue;
  std::vector<std::vector<Counted>> tasks;
  for (int i = 0; i < submitters; ++i) tasks.emplace_back(per_submitter);
  std::atomic<int> ran{0};
  std::vector<std::thread> all;
  for (int s = 0; s < submitters; ++s) {
    all.emplace_back([&, s] {
      for (Counted& task : tasks[static_cast<std::size_t>(s)]) {
        task.prepare(Counted::run);
        queue.submit(task);
      }
    });
  }
  for (int r = 0; r < runners; ++r) {
    all.emplace_back([&] {
      while (ran.load() < submitters * per_submitter) {
        const int n = queue.run(7);
        ran.fetch_add(n);
        if (n == 0) std::this_thread::yield();
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  EXPECT_FALSE(queue.has_work());
  for (const auto& list : tasks) {
    for (const Counted& task : list) ASSERT_EQ(task.runs.load(), 1);
  }
}

constexpr std::uint64_t an_hour = 3'600'000'000'000;

TEST(SleeperTest, NoWakeUpIsLost) {
  constexpr int rounds = 20'000;
  Sleeper sleeper{posix_platform()};
  ASSERT_EQ(sleeper.error(), "");
  std::atomic<int> ball{0};
  std::thread other([&] {
    for (int i = 0; i < rounds; ++i) {
      while (ball.load() != 2 * i) std::this_thread::yield();
      ball.store(2 * i + 1);
      sleeper.wake();
    }
  });
  for (int i = 0; i < rounds; ++i) {
    while (ball.load() != 2 * i + 1) {
      ASSERT_TRUE(sleeper.try_claim());
      if (ball.load() != 2 * i + 1) sleeper.sleep(an_hour);  // a lost wake-up ends in the test's time limit
      sleeper.release();
    }
    ball.store(2 * i + 2);
  }
  other.join();
}

TEST(ParkerTest, SignalBeforeAndDuringThePark) {
  Platform& platform = posix_platform();
  Parker& parker = Parker::acquire();
  parker.reset();
  parker.signal(platform);
  EXPECT_TRUE(parker.park(platform, ~std::uint64_t{0}));
  for (int i = 0; i < 2000; ++i) {
    parker.reset();
    std::thread other([&] { parker.signal(platform); });
    while (!parker.park(platform, 1'000'000'000)) {
    }
    other.join();
  }
  Parker::release(parker);
}

/// Work that a worker must find: produced by another thread, announced by wake().
class Pile final : public Progress {
 public:
  std::atomic<int> work{0}, done{0}, refused{0};
  Sleeper sleeper{posix_platform()};

  int step() override {
    const int taken = work.exchange(0);
    done.fetch_add(taken);
    return taken;
  }
  void sleep(std::uint64_t timeout_ns, Called called) override {
    if (!sleeper.try_claim()) {
      ++refused;
      sleeper.await_release(an_hour);
      return;
    }
    if (work.load() == 0) sleeper.sleep(timeout_ns, called);
    sleeper.release();
  }
  void wake() override { sleeper.wake(); }
};

TEST(WorkerTest, FindsWorkWhetherItPollsOrSleepsAndStops) {
  Pile pile;
  Worker worker(posix_platform(), pile, Idle::Budget{1'000, 1'000});
  EXPECT_FALSE(worker.active());
  for (int round = 0; round < 50; ++round) {
    worker.start();
    worker.start();  // no effect
    EXPECT_TRUE(worker.active());
    for (int i = 0; i < 20; ++i) {
      const int before = pile.done.load();
      if (i % 2 == 0) {
        while (worker.state() != Worker::State::sleeping) std::this_thread::yield();
      }
      pile.work.fetch_add(1);
      pile.wake();
      while (pile.done.load() == before) std::this_thread::yield();
    }
    worker.stop();
    EXPECT_FALSE(worker.active());
    EXPECT_EQ(worker.state(), Worker::State::off);
  }
}

/// A waiter sleeps on the drivers, and the worker has nothing to do: it must not ask for its turn again and again.
TEST(WorkerTest, WaitsForTheEndOfAnothersSleep) {
  Pile pile;
  ASSERT_TRUE(pile.sleeper.try_claim());
  Worker worker(posix_platform(), pile, Idle::Budget{1'000, 1'000});
  worker.start();
  while (pile.refused.load() == 0) std::this_thread::yield();
  for (int i = 0; i < 10'000; ++i) std::this_thread::yield();
  EXPECT_LE(pile.refused.load(), 2);  // a park may return early
  pile.sleeper.release();
  while (!pile.sleeper.occupied()) std::this_thread::yield();
  pile.work.store(1);
  pile.wake();
  while (pile.done.load() == 0) std::this_thread::yield();
  worker.stop();
}

TEST(Posix, MovesThreadsThatMayGoThere) {
  std::thread([] {
    Platform& platform = posix_platform();
    cpu_set_t before, after;
    ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    const int here = platform.current_unit();
    EXPECT_TRUE(platform.move_to_unit(here));
    EXPECT_FALSE(platform.move_to_unit(CPU_SETSIZE));
    EXPECT_FALSE(platform.move_to_unit(-1));
    ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&before, &after)) << "it may go anywhere again";
    for (int unit = 0; unit < CPU_SETSIZE; ++unit) {
      EXPECT_TRUE(CPU_ISSET(unit, &before) || !platform.move_to_unit(unit)) << unit;
    }
  }).join();
}

TEST(Posix, KeepsThreadsOffAUnitAsFarAsTheyMayRunElsewhere) {
  std::thread([] {
    Platform& platform = posix_platform();
    const auto mask = [] {
      cpu_set_t set;
      EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
      return set;
    };
    const cpu_set_t before = mask();
    EXPECT_FALSE(platform.keep_off_unit(-1)) << "it keeps off none";
    EXPECT_FALSE(platform.keep_off_unit(CPU_SETSIZE));
    cpu_set_t off = before;
    const int here = platform.current_unit();
    CPU_CLR(here, &off);
    if (CPU_COUNT(&off) != 0) {
      EXPECT_TRUE(platform.keep_off_unit(here));
      EXPECT_NE(platform.current_unit(), here);
      EXPECT_FALSE(platform.keep_off_unit(here)) << "it does already";
      const cpu_set_t kept = mask();
      EXPECT_TRUE(CPU_EQUAL(&kept, &off));
      EXPECT_TRUE(platform.keep_off_unit(platform.current_unit())) << "another one instead";
      EXPECT_EQ(CPU_COUNT(&off), CPU_COUNT(&before) - 1);
      EXPECT_TRUE(platform.keep_off_unit(-1));
      const cpu_set_t after = mask();
      EXPECT_TRUE(CPU_EQUAL(&after, &before));
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(here, &one);
    EXPECT_EQ(platform.keep_off_unit(here), CPU_COUNT(&off) != 0);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);  // as if bound from outside
    EXPECT_FALSE(platform.keep_off_unit(here)) << "it has nowhere else to go";
    EXPECT_FALSE(platform.keep_off_unit(-1));
    const cpu_set_t bound = mask();
    EXPECT_TRUE(CPU_EQUAL(&bound, &one)) << "what another caller has said holds";
  }).join();
}

/// A pipe, and SIGPIPE at its default: the program ends if it is raised.
struct BrokenPipe {
  BrokenPipe() {
    EXPECT_EQ(::pipe(ends), 0);
    ::close(ends[0]);
    before = std::signal(SIGPIPE, SIG_DFL);
  }
  ~BrokenPipe() {
    ::close(ends[1]);
    std::signal(SIGPIPE, before);
  }
  int ends[2] = {-1, -1};
  void (*before)(int) = nullptr;
};

TEST(WriteQuietly, RaisesNoSignalWhereNoReaderIsLeft) {
  const BrokenPipe pipe;
  EXPECT_EQ(write_quietly(pipe.ends[1], "without a reader"), EPIPE);
  sigset_t pending;
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
}

TEST(WriteQuietly, LeavesASignalThatWasPendingBefore) {
  const BrokenPipe pipe;
  sigset_t set, before, pending;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &set, &before);
  ::raise(SIGPIPE);
  EXPECT_EQ(write_quietly(pipe.ends[1], "x"), EPIPE);
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 1);
  const timespec at_once{};
  sigtimedwait(&set, nullptr, &at_once);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace
}  // namespace canele::ltask
