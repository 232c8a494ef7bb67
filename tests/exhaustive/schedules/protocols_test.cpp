// SPDX-License-Identifier: BSD-3-Clause
//
// ltask's protocols in every order of their steps: nothing is lost, no thread is left asleep, every order ends.
// The worlds run in the Explorer's threads.
//
// ltask's own sources run here, with std::atomic and the system calls replaced (stand_ins.hpp). Sleeps have no timeout:
// a lost wake-up that costs a second in production leaves a thread asleep for ever here. Code that is not ltask's is
// written again here; its comment names the original ("after ...").
#include <gtest/gtest.h>

#include <cstdio>

#include "comm/engine/waiters.hpp"
#include "ltask/event_count.hpp"
#include "ltask/parker.hpp"
#include "ltask/sleeper.hpp"
#include "ltask/submit_lock.hpp"
#include "ltask/task.hpp"
#include "ltask/worker.hpp"
#include "tests/exhaustive/schedules/every_order.hpp"
#include "tests/exhaustive/schedules/explored_platform.hpp"
#include "tests/exhaustive/schedules/stand_ins.hpp"

namespace canele::exhaustive {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr std::uint64_t for_ever = ~0ull;

// ---------------------------------------------------------------------------------------------- the submission lock

struct ExploredFences {
  static void light() {}
  static void heavy() { Explorer::current()->fence_everywhere(); }
  static const void* self() { return Explorer::current()->self(); }
};

/// Every thread posts, the first `First` times, the others `Posts` times. A thread that finds the lock free runs its
/// own post and the linked ones. With `PutsDown` it runs at most one linked post, then puts the lock down, and polls at
/// its end. A thread that posts meanwhile inherits the lock.
template <int Threads, int Posts, int First = Posts, bool PutsDown = false, int Reversed = 64>
struct Submissions {
  using Lock = ltask::BasicSubmitLock<ExploredFences, Reversed>;
  struct Post : Lock::Node {
    int thread = 0, number = 0;
  };
  Submissions() : Submissions([](Lock&) {}) {}
  template <typename Prepare>
  explicit Submissions(Prepare prepare) {
    prepare(lock);
    for (int t = 0; t < Threads; ++t) {
      Explorer::current()->spawn([this, t] {
        bool has_put_down = false;
        for (int i = 0; i < posts_of(t); ++i) has_put_down = post(t, i) || has_put_down;
        while (has_put_down && lock.try_inherit()) leave();
      });
    }
  }
  static int posts_of(int thread) { return thread == 0 ? First : Posts; }
  /// Posts once. Returns true if the thread has put the lock down.
  bool post(int thread, int number) {
    Post& mine = posts[thread][number];
    mine.thread = thread;
    mine.number = number;
    const auto entry = lock.lock_or_push(mine);
    if (entry == Lock::Entry::locked) run(mine);
    return entry != Lock::Entry::linked && leave();
  }
  bool leave() {
    for (bool served = false; lock.has_rest() || !lock.try_unlock(); served = PutsDown) {
      if (served) {
        lock.put_down();
        return true;
      }
      while (typename Lock::Node* const node = lock.next_linked()) {
        run(static_cast<Post&>(*node));
        if (PutsDown) break;
      }
    }
    return false;
  }
  void run(const Post& post) {
    room.enter();
    if (next[post.thread]++ != post.number)
      Explorer::current()->fail("a post overtook one of its thread, or ran twice");
    room.leave();
  }
  void check() {
    for (int t = 0; t < Threads; ++t) {
      if (next[t] != posts_of(t)) Explorer::current()->fail("a post was left behind");
    }
    if (lock.taken() || lock.seems_put_down()) Explorer::current()->fail("the lock stays taken");
  }
  Lock lock;
  Room room;
  Post posts[Threads][First > Posts ? First : Posts];
  int next[Threads] = {};  // changed only by a thread inside the lock
};

TEST(SubmitLockInEveryOrder, RunsEveryPostOnceAndInOrder) {
  in_every_order<Submissions<2, 1>>("SubmitLock, 2 threads, 1 post each");
  in_every_order<Submissions<2, 2>>("SubmitLock, 2 threads, 2 posts each");
  in_every_order<Submissions<3, 1>>("SubmitLock, 3 threads, 1 post each");
}

TEST(SubmitLockInEveryOrder, PutDownItLosesNothing) {
  in_every_order<Submissions<2, 3, 1, true>>("put down, a post, and 3 of another thread");
  in_every_order<Submissions<3, 1, 1, true>>("put down, 3 threads, 1 post each");
  in_every_order<Submissions<2, 3, 1, true, 1>>("put down, 3 posts of another thread, ordered one at a time");
}

/// The first thread has the bias when all begin; with `Tries`, one more thread locks only if the lock is free. AtMost:
/// after so many entries in a row, a thread is given the bias again.
template <int Owners, int Others, int Posts, bool Tries, std::uint32_t AtMost = 1u << 16>
struct BiasedSubmissions : Submissions<Others + 1, Posts, Owners> {
  using Base = Submissions<Others + 1, Posts, Owners>;
  BiasedSubmissions() : Base(give_bias) {
    if (Tries) Explorer::current()->spawn([this] { try_once(); });
  }
  static void give_bias(typename Base::Lock& lock) {
    lock.bias_after(1, AtMost);
    for (int i = 0; i < 2 && lock.try_lock(); ++i) lock.unlock_or_take();
    if (!lock.biased()) Explorer::current()->fail("no thread has the bias");
  }
  void try_once() {
    if (!this->lock.try_lock()) return;
    this->room.enter();
    this->room.leave();
    this->leave();
  }
};

TEST(SubmitLockInEveryOrder, AnOwnerLosesItsBiasAndNothingElse) {
  in_every_order<BiasedSubmissions<1, 1, 1, false>>("biased, a post, and one of another thread");
  in_every_order<BiasedSubmissions<2, 1, 1, false>>("biased, 2 posts, and one of another thread");
  in_every_order<BiasedSubmissions<1, 1, 0, true>>("biased, a post, and one that tries");
  in_every_order<BiasedSubmissions<2, 1, 2, false>>("biased, 2 posts, and 2 of another thread", some_old);
  in_every_order<BiasedSubmissions<1, 2, 1, false>>("biased, a post, and one of each of two", bounded);
}

TEST(SubmitLockInEveryOrder, AnOwnerGivesWayAmongOthersAndMoreThanOnce) {
  in_every_order<BiasedSubmissions<1, 1, 1, true>>("biased, a post, one of another, one that tries", bounded);
  in_every_order<BiasedSubmissions<3, 1, 1, false>>("biased, 3 posts, and one of another thread", some_old);
  in_every_order<BiasedSubmissions<3, 1, 1, false, 1>>("biased again, 3 posts, and one of another", bounded);
}

/// Words of requests, which the owner of the lock sets by plain stores while other threads guard them. After
/// Engine::publish, Wait::attach (comm/post/wait.cpp) and RequestWordGuard. Biased: the first thread is the owner when
/// all begin; else it may become the owner. Its last turn ends all requests. OwnToo: it also waits for one of them
/// itself.
template <bool Biased, int Turns, bool OwnToo, std::uint32_t AtMost = 1u << 16>
struct Guards {
  static constexpr int done = 1;  // larger values: the names of waiters
  Guards() {
    lock.bias_after(1, AtMost);
    for (int i = 0; Biased && i < 2 && lock.try_lock(); ++i) lock.unlock_or_take();
    if (lock.biased() != Biased) Explorer::current()->fail("the lock does not begin as it should");
    Explorer::current()->spawn([this] { own(); });
    Explorer::current()->spawn([this] { attach(words[1], 3); });
  }
  void own() {
    for (int turn = 1; turn <= Turns; ++turn) {
      if (OwnToo && turn == Turns) attach(words[0], 2);
      if (!enter()) continue;
      for (int i = OwnToo ? 0 : 1; turn == Turns && i < 2; ++i) publish(words[i]);
      ended = turn == Turns;
      lock.unlock_or_take();
    }
  }
  /// Tries twice to enter, then gives up: there are orders enough in which no thread gives up.
  bool enter() {
    if (lock.try_lock()) return true;
    Explorer::current()->yield();
    return lock.try_lock();
  }
  void publish(std::atomic<int>& word) {
    int seen = word.load(std::memory_order_relaxed);
    if (seen == 0 && lock.has_owner()) return word.store(done, std::memory_order_release);
    if (seen == 0 && word.compare_exchange_strong(seen, done, std::memory_order_acq_rel)) return;
    woken += word.exchange(done, std::memory_order_acq_rel);
  }
  void attach(std::atomic<int>& word, int name) {
    const bool inside = lock.try_lock_as_owner();
    const bool alone = inside || !lock.begin_guard();
    if (alone || enter()) {
      if (!alone) lock.unlock_or_take();
      int seen = word.load(std::memory_order_acquire);
      if (seen == 0 && word.compare_exchange_strong(seen, name, std::memory_order_acq_rel)) attached += name;
    }
    inside ? static_cast<void>(lock.unlock_or_take()) : lock.end_guard();
  }
  void check() {
    if (ended && woken != attached) Explorer::current()->fail("a thread that waits was not woken");
    if (lock.taken()) Explorer::current()->fail("the lock stays taken");
  }
  ltask::BasicSubmitLock<ExploredFences> lock;
  std::atomic<int> words[2];    // [0]: of a request that the first thread waits for; [1]: of the other thread's
  int woken = 0, attached = 0;  // no step is made while they change
  bool ended = false;
};

TEST(SubmitLockInEveryOrder, AGuardedWordIsNotOverwrittenByAnOwner) {
  in_every_order<Guards<true, 1, true>>("biased, a turn, both wait");
  in_every_order<Guards<true, 2, true>>("biased, 2 turns, both wait");
  in_every_order<Guards<false, 3, false>>("biased meanwhile, 3 turns, and one that waits");
  in_every_order<Guards<true, 3, false, 1>>("biased again, 3 turns, and one that waits", bounded);
}

// ------------------------------------------------------------------------------------------- the combining try-lock

/// Every thread wants service, and serves all that want it if the lock is free. One more thread locks only if the lock
/// is free. After serve() and Engine::arm() in comm/engine/progress.cpp.
template <int Threads>
struct Served {
  Served() {
    for (int t = 0; t < Threads; ++t) {
      Explorer::current()->spawn([this, t] {
        wanted[t].store(1, std::memory_order_release);
        if (!lock.try_lock_or_delegate()) return;
        do serve();
        while (lock.unlock_or_repeat());
      });
    }
    Explorer::current()->spawn([this] {
      if (!lock.try_lock()) return;
      room.enter();
      room.leave();
      while (lock.unlock_or_repeat()) serve();
    });
  }
  /// Serves all requests; checks each by a load first, as DriverInstance::has_flush() does.
  void serve() {
    room.enter();
    for (auto& one : wanted) {
      if (one.load(std::memory_order_acquire) != 0) served += one.exchange(0, std::memory_order_acquire);
    }
    room.leave();
  }
  void check() {
    if (served != Threads) Explorer::current()->fail("a thread was turned away and not served");
  }
  ltask::CombiningTryLock lock;
  Room room;
  std::atomic<int> wanted[Threads];
  int served = 0;  // changed only by the thread that has the lock
};

TEST(CombiningTryLockInEveryOrder, ServesEveryThreadThatDelegates) {
  in_every_order<Served<1>>("CombiningTryLock, 1 that delegates, 1 that tries");
  in_every_order<Served<2>>("CombiningTryLock, 2 that delegate, 1 that tries");
}

// -------------------------------------------------------------------------------------------- the worker's sleep

/// What a worker drives: a task queue and a sleeper; after Engine::try_sleep.
class Turns final : public ltask::Progress {
 public:
  int step() override { return tasks.run(32); }
  bool try_sleep(ltask::Called called) {
    if (!sleeper.try_claim()) return false;
    if (!tasks.has_work()) sleeper.sleep(for_ever, called);
    sleeper.release();
    return true;
  }
  void sleep(std::uint64_t timeout_ns, ltask::Called called) override {
    if (!try_sleep(called)) sleeper.await_release(timeout_ns);
  }
  void wake() override { sleeper.wake(); }
  /// Submits a task, after Engine::run_or_leave_tasks.
  void submit(ltask::Task& task) {
    tasks.submit(task);
    if (tasks.has_work()) sleeper.wake();
  }

  ExploredPlatform platform;
  ltask::Sleeper sleeper{platform};
  ltask::TaskQueue tasks;
};

/// A worker, and a thread that gives it a task.
struct Working {
  Working() {
    Explorer::current()->spawn([this] {
      worker.start();
      task.fill();
      turns.submit(task);
      ran.await(1);
      worker.stop();
    });
  }
  void check() {
    if (ran.now() != 1 || turns.tasks.has_work()) Explorer::current()->fail("a task did not run once");
    if (worker.state() != ltask::Worker::State::off) Explorer::current()->fail("the worker is not off");
  }
  Turns turns;
  ltask::Worker worker{turns.platform, turns, {0, 0}};
  Tally ran;
  Counted task{ran};
};

/// The worker's sleep without the rest: two threads submit work.
struct Sleeping {
  Sleeping() {
    Explorer::current()->spawn([this] {
      while (done() < 2) {
        if (!sleeper.try_claim()) continue;
        if (done() < 2) sleeper.sleep(for_ever);
        sleeper.release();
      }
    });
    for (std::atomic<int>& one : work) {
      Explorer::current()->spawn([this, &one] {
        one.store(1, std::memory_order_release);
        sleeper.wake();
      });
    }
  }
  int done() const { return work[0].load(std::memory_order_acquire) + work[1].load(std::memory_order_acquire); }
  void check() {}
  ExploredPlatform platform;
  ltask::Sleeper sleeper{platform};
  std::atomic<int> work[2];
};

TEST(SleepInEveryOrder, AWorkerRunsWhatIsSubmittedAndStops) {
  in_every_order<Working>("Worker, Sleeper, TaskQueue, 1 submitter");
  in_every_order<Sleeping>("Sleeper, 2 that leave work", some_old);
}

// ------------------------------------------------------------------------------------------- a waiter's sleep

/// A request as a waiter sees it: a word that holds the waiter's name; after RequestWord and Engine::publish.
class Promise {
 public:
  bool done() const { return word_.load(std::memory_order_acquire) == kept; }
  /// Registers the parker. Returns false if the promise is kept already.
  bool attach(ltask::Parker& parker) {
    parker_ = &parker;
    int seen = 0;
    return word_.compare_exchange_strong(seen, awaited, std::memory_order_acq_rel);
  }
  void keep(Platform& platform) {
    if (word_.exchange(kept, std::memory_order_acq_rel) == awaited) parker_->signal(platform);
  }

 private:
  static constexpr int awaited = 1, kept = 2;
  std::atomic<int> word_{0};
  ltask::Parker* parker_ = nullptr;
};

/// One thread waits for two promises in turn with one parker, two others keep them. After Wait::park in
/// comm/post/wait.cpp.
struct Parking {
  Parking() {
    Explorer::current()->spawn([this] {
      for (Promise& promise : promises) wait(promise);
    });
    for (Promise& promise : promises) Explorer::current()->spawn([this, &promise] { promise.keep(platform); });
  }
  void wait(Promise& promise) {
    parker.reset();
    if (!promise.attach(parker)) return;
    while (!promise.done()) {
      parker.park(platform, for_ever);
      if (!promise.done()) parker.reset();
    }
  }
  void check() {}
  ExploredPlatform platform;
  ltask::Parker parker;
  Promise promises[2];
};

/// Two threads wait, each for its own message, without a worker: one polls for both, the other sleeps. A poll finds one
/// message; `First` says whether the first one found is the first thread's. After Wait::run in comm/post/wait.cpp.
/// `Leaves`: the polling thread leaves to run a task after a message, and comes back. (With messages that come
/// meanwhile there are too many orders.)
template <int First, bool Leaves>
struct Waiting {
  Waiting() {
    for (int i = 0; i < 2; ++i) {
      Explorer::current()->spawn([this, i] { wait(promises[i], parkers[i]); });
    }
  }
  void wait(Promise& mine, ltask::Parker& parker) {
    bool attached = false, listed = false;
    while (!mine.done()) {
      if (waiters.try_take_token()) {
        poll(mine);
        waiters.pass_token(platform);
        continue;
      }
      if (!attached) parker.reset();
      if (!std::exchange(attached, true) && !mine.attach(parker)) break;
      if (!std::exchange(listed, true)) {
        waiters.add(parker);
        if (waiters.token_free()) continue;
      }
      parker.park(platform, for_ever);
      if (!mine.done()) parker.reset();
    }
    if (!listed) return;
    waiters.remove(parker);
    if (waiters.token_free()) waiters.wake_one(platform);
  }
  void poll(const Promise& mine) {
    while (!mine.done()) {
      place.enter();
      const int arrived = next++;
      place.leave();
      if (arrived == 2) Explorer::current()->fail("a message is lost");
      promises[arrived == 0 ? First : 1 - First].keep(platform);
      if (Leaves && waiters.others_sleep()) return;
    }
  }
  void check() {}
  ExploredPlatform platform;
  comm::Waiters waiters;
  int next = 0;  // number of the next message; only the holder of the token takes one
  Room place;
  ltask::Parker parkers[2];
  Promise promises[2];
};

TEST(WaitersInEveryOrder, OneOfThemPollsUntilAllHaveTheirMessage) {
  in_every_order<Waiting<0, false>>("Waiters, 2, messages in order");
  in_every_order<Waiting<1, true>>("Waiters, 2, the one that polls leaves");
}

TEST(ParkerInEveryOrder, WakesForEachOfTwoPromisesWithALateSignalBetween) {
  in_every_order<Parking>("Parker, 1 waiter, 2 that keep promises");
}

/// A waiter sleeps where the worker would: on the drivers. After Wait::poll. With `WithWorker`, a worker wants that
/// place, too.
template <bool WithWorker>
struct Polling {
  Polling() {
    Explorer::current()->spawn([this] { wait(); });
    Explorer::current()->spawn([this] {
      if (WithWorker) worker.start();
      promise.keep(turns.platform);
      worker.stop();
    });
  }
  void wait() {
    parker.reset();
    if (!promise.attach(parker)) return;
    while (!promise.done()) {
      if (turns.step() > 0) continue;
      if (!parker.sleeps_elsewhere([](void* own) { static_cast<Polling*>(own)->wake(); }, this)) {
        parker.reset();
        continue;
      }
      const bool slept = turns.try_sleep(
          {[](const void* own) { return static_cast<const ltask::Parker*>(own)->signaled(); }, &parker});
      parker.awake(turns.platform);
      if (slept) continue;
      parker.park(turns.platform, for_ever);
      if (!promise.done()) parker.reset();
    }
    over = true;
  }
  void wake() {
    if (over) Explorer::current()->fail("a signal uses what its owner may have freed");
    turns.wake();
  }
  void check() {}
  Turns turns;
  ltask::Worker worker{turns.platform, turns, {0, 0}};
  ltask::Parker parker;
  Promise promise;
  bool over = false;  // the engine on which the waiter slept may have been destroyed
};

/// An on-demand thread waits for a notification; two threads submit work, and notify it if it waits. After
/// OnDemandProgress::park.
struct Notified {
  Notified() {
    Explorer::current()->spawn([this] {
      while (!all_there()) event_count.await(platform, for_ever, [this] { return !all_there(); });
    });
    for (std::atomic<int>& one : work) {
      Explorer::current()->spawn([this, &one] {
        one.store(1, std::memory_order_release);
        if (event_count.has_waiter()) event_count.notify(platform);
      });
    }
  }
  bool all_there() const {
    return work[0].load(std::memory_order_acquire) + work[1].load(std::memory_order_acquire) == 2;
  }
  void check() {}
  ExploredPlatform platform;
  ltask::BasicEventCount<ExploredFences> event_count;
  std::atomic<int> work[2];
};

TEST(EventCountInEveryOrder, WhoWaitsIsNotifiedOrSeesTheWork) {
  in_every_order<Notified>("EventCount, 1 that waits, 2 that leave work", a_few_old);
}

TEST(SleepInEveryOrder, AWaiterIsWokenOnTheDrivers) {
  in_every_order<Polling<false>>("Parker, Sleeper, 1 waiter");
  in_every_order<Polling<true>>("Parker, Sleeper, 1 waiter and a worker", {true, true, 1, 4});
}

}  // namespace
}  // namespace canele::exhaustive
