// SPDX-License-Identifier: BSD-3-Clause
//
// A program that sleeps in a poll of its own (comm/post/basic_wakeup.hpp), beside a thread that waits, or another
// program: in every order each gets its event. And the word by which a target permits accesses to its memory.
// The worlds run in the Explorer's threads.
#include <gtest/gtest.h>

#include "comm/engine/waiters.hpp"
#include "comm/post/basic_wakeup.hpp"
#include "comm/state/access_permit.hpp"
#include "ltask/sleeper.hpp"
#include "tests/exhaustive/schedules/every_order.hpp"
#include "tests/exhaustive/schedules/explored_platform.hpp"

namespace canele::exhaustive {
namespace {

constexpr std::uint64_t for_ever = ~0ull;

/// A completion queue that counts its entries; after CompletionQueue.
class Entries {
 public:
  bool listen(ltask::Parker& parker) {
    const std::lock_guard guard(mutex_);
    if (there_ > 0) return false;
    listener_ = &parker;
    return true;
  }
  void hear_no_more() {
    const std::lock_guard guard(mutex_);
    listener_ = nullptr;
  }
  void add(Platform& platform) {
    ltask::Parker* parker = nullptr;
    {
      const std::lock_guard guard(mutex_);
      ++there_;
      parker = std::exchange(listener_, nullptr);
    }
    if (parker != nullptr) parker->signal(platform);
  }
  bool take() {
    const std::lock_guard guard(mutex_);
    return there_ > 0 && there_-- > 0;
  }

 private:
  std::mutex mutex_;
  int there_ = 0;
  ltask::Parker* listener_ = nullptr;
};

struct EventsOf {
  Entries* entries;
  bool listen(ltask::Parker& parker) { return entries->listen(parker); }
  void hear_no_more() { entries->hear_no_more(); }
};

/// An engine whose network brings one message to each of two owners, as bits of a word. Without a worker, and without
/// an on-demand thread.
class SmallEngine {
 public:
  enum class SleepBegin : std::uint8_t { occupied, busy, armed };

  SmallEngine() {
    sleeper.watch(platform.make_descriptor([this] { return arrived.now() != 0; }));
  }

  /// Delivers what has arrived. Returns false if that is nothing.
  bool step() {
    const int what = arrived.exchange(0, std::memory_order_acq_rel);
    for (int owner = 0; owner < 2; ++owner) {
      if ((what & 1 << owner) != 0) queues[owner].add(platform);
    }
    return what != 0;
  }
  /// After Engine::begin_sleep, end_sleep, relieve_program and try_sleep.
  SleepBegin begin_sleep() {
    if (!sleeper.try_claim()) return SleepBegin::occupied;
    if (arrived.load(std::memory_order_acquire) == 0) return SleepBegin::armed;
    end_sleep();
    return SleepBegin::busy;
  }
  void end_sleep() { sleeper.release(); }
  bool relieve_program() {
    if (progress.program_sleep.sleeper.load(std::memory_order_acquire) == nullptr) return !sleeper.occupied();
    const std::lock_guard guard(progress.program_sleep.mutex);
    comm::ProgramSleeper* const program = progress.program_sleep.sleeper.load(std::memory_order_relaxed);
    if (program != nullptr) program->leave();
    return true;
  }
  bool try_sleep(ltask::Called called) {
    SleepBegin begin = begin_sleep();
    while (begin == SleepBegin::occupied && relieve_program()) begin = begin_sleep();
    if (begin == SleepBegin::occupied) return false;
    if (begin == SleepBegin::busy) return true;
    sleeper.sleep(for_ever, called);
    end_sleep();
    return true;
  }
  int descriptor() const { return sleeper.descriptor(); }
  void resume_deferred_work() {}
  void relieve_on_demand_thread() {}
  void wake_on_demand_thread() {}
  void leave_rest() {}

  ExploredPlatform platform;
  ltask::Sleeper sleeper{platform};
  std::atomic<int> arrived{0};
  Entries queues[2];
  struct {
    comm::Waiters waiters;
    comm::ProgramSleep program_sleep;
    struct {
      bool asleep() const { return false; }
    } on_demand;
    struct {
      bool active() const { return false; }
    } worker;
  } progress;
};

/// What the worlds below share: a network thread, whose first message is for owner `First`.
template <int First>
class Networked {
 public:
  void check() {}

 protected:
  Networked() {
    Explorer::current()->spawn([this] {
      engine.arrived.fetch_or(1 << First, std::memory_order_acq_rel);
      engine.arrived.fetch_or(1 << (1 - First), std::memory_order_acq_rel);
    });
  }
  /// A program that waits for its entry in its own poll.
  void program(int owner) {
    Entries& mine = engine.queues[owner];
    std::string why;
    comm::post::BasicWakeup<SmallEngine, EventsOf> wakeup(engine, {&mine}, engine.platform.make_wake_set(&why));
    while (!mine.take()) {
      if (!wakeup.arm()) continue;
      wakeup.set().wait(for_ever);
      wakeup.disarm();
    }
  }

  SmallEngine engine;
};

/// A program, and a thread that waits in the library. After Wait::poll_or_park and Wait::poll in comm/post/wait.cpp;
/// one such thread always gets the token.
template <int First>
class BesideAWaiter : Networked<First> {
 public:
  using Networked<First>::check;
  BesideAWaiter() {
    Explorer::current()->spawn([this] { this->program(0); });
    Explorer::current()->spawn([this] { wait(); });
  }

 private:
  void wait() {
    SmallEngine& own = this->engine;
    if (!own.progress.waiters.try_take_token()) Explorer::current()->fail("the token is taken");
    ltask::Parker parker;
    parker.reset();
    bool woken = !own.queues[1].listen(parker);
    while (!woken && !parker.signaled()) {
      if (own.step()) continue;
      if (!parker.sleeps_elsewhere([](void* of) { static_cast<SmallEngine*>(of)->sleeper.wake(); }, &own)) break;
      const bool slept =
          own.try_sleep({[](const void* of) { return static_cast<const ltask::Parker*>(of)->signaled(); }, &parker});
      parker.awake(own.platform);
      if (!slept) parker.park(own.platform, for_ever);
    }
    own.queues[1].hear_no_more();
    if (!own.queues[1].take()) Explorer::current()->fail("the waiter was woken for nothing");
    own.progress.waiters.pass_token(own.platform);
  }
};

/// Two programs, each with a poll of its own.
template <int First>
class TwoPrograms : Networked<First> {
 public:
  using Networked<First>::check;
  TwoPrograms() {
    for (const int owner : {0, 1}) Explorer::current()->spawn([this, owner] { this->program(owner); });
  }
};

TEST(WakeupInEveryOrder, EveryProgramGetsItsEvent) {
  in_every_order<BesideAWaiter<0>>("Wakeup beside a waiter, its event first", {true, true, 1, 5});
  in_every_order<BesideAWaiter<1>>("Wakeup beside a waiter, its event last", {true, true, 1, 5});
  in_every_order<TwoPrograms<0>>("Wakeups, two programs", {true, true, 1, 5});
}

/// Two threads of an origin access memory, and the target frees it meanwhile. The room is the memory of one of them:
/// the target must find it empty, and see what was done there.
struct Permitted {
  using Permit = comm::one_sided::AccessPermit;

  Permitted() {
    Permit(word).open(generation);
    for (Room& mine : memory) {
      Explorer::current()->spawn([this, &mine] {
        if (!Permit(word).enter(generation)) return;
        mine.enter();
        mine.leave();
        Permit(word).leave();
      });
    }
    Explorer::current()->spawn([this] {
      Permit(word).close();
      while (!Permit(word).is_idle(generation)) Explorer::current()->yield();
      for (Room& one : memory) one.enter();  // and stays there: the memory is freed
    });
  }
  void check() {
    if ((word.now() & 0xffff'ffff) != 0) Explorer::current()->fail("an access is counted that is over");
  }

  static constexpr std::uint32_t generation = 5;
  Permit::Word word;
  Room memory[2];
};

TEST(AccessPermitInEveryOrder, FreedMemoryIsNotAccessed) {
  in_every_order<Permitted>("AccessPermit, 2 that access, 1 that frees");
}

}  // namespace
}  // namespace canele::exhaustive
