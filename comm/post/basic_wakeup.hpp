// SPDX-License-Identifier: BSD-3-Clause
//
// BasicWakeup: lets a program sleep in a poll of its own until there is an event, or the program has to make progress.
//
// One thread at a time arms and disarms. Any thread may wake it.
//
//     disarmed ──arm()──┬─ an event, or other work, is there ──▶ disarmed
//                       ├─ no thread makes progress ──▶ on the drivers: what arrives wakes the program
//                       └─ another thread makes progress ──▶ beside it: that thread wakes the program
//     on the drivers ──(a thread wants to sleep there: leave())──▶ beside it
//     both ──disarm()──▶ disarmed
//
// The program sleeps on a wake set of its own. Its bell rings when there is an event, and when a thread that made
// progress leaves. While the program is on the drivers, it holds the claim of the engine's Sleeper, whose descriptor is
// in the set.
//
// A template, so that tests explore every order of these steps: of the engine (Engine, or a small one), and of the
// events (post/wakeup.hpp: a completion queue).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "comm/engine/program_sleep.hpp"
#include "comm/engine/waiters.hpp"
#include "ltask/parker.hpp"
#include "ltask/platform.hpp"

namespace canele::comm::post {

/// Events: listen(parker) has the parker signaled for the next event, and returns false if one is there already;
/// hear_no_more() undoes it.
template <typename Engine, typename Events>
class BasicWakeup final : public ProgramSleeper {
 public:
  BasicWakeup(Engine& engine, Events events, std::unique_ptr<WakeSet> set)
      : engine_(engine), events_(std::move(events)), set_(std::move(set)), parker_(ltask::Parker::acquire()) {}
  BasicWakeup(const BasicWakeup&) = delete;
  BasicWakeup& operator=(const BasicWakeup&) = delete;
  ~BasicWakeup() {
    disarm();
    ltask::Parker::release(parker_);
  }

  WakeSet& set() { return *set_; }
  const WakeSet& set() const { return *set_; }

  /// Returns false, disarmed, if the program has to look for events, or to make progress, first.
  bool arm() {
    disarm();
    engine_.resume_deferred_work();
    engine_.step();  // serves what is no event of a peer, and would wake the program again and again
    if (!listen()) return false;
    engine_.progress.waiters.enter();
    const Begin begun = begin();
    if (begun != Begin::armed) engine_.progress.waiters.exit();  // else leave_drivers() does
    if (begun == Begin::busy) hear_no_more();
    return begun != Begin::busy;
  }

  void disarm() {
    Waiters& waiters = engine_.progress.waiters;
    {
      const std::lock_guard guard(program_sleep().mutex);
      if (state_ == State::disarmed) return;
      if (state_ == State::on_drivers) {
        leave_drivers();
      } else {
        waiters.remove(parker_);
      }
      state_ = State::disarmed;
    }
    hear_no_more();
    // The token may have been passed to this program, or another program sleeps beside it.
    if (waiters.token_free()) waiters.wake_one(engine_.platform);
    engine_.wake_on_demand_thread();
    engine_.leave_rest();
  }

 private:
  enum class State : std::uint8_t { disarmed, on_drivers, beside };
  using Begin = typename Engine::SleepBegin;

  static void ring(void* set) { static_cast<WakeSet*>(set)->ring(); }

  ProgramSleep& program_sleep() { return engine_.progress.program_sleep; }

  /// Lets events ring the bell from now on. Returns false if one is there.
  bool listen() {
    parker_.reset();
    while (!parker_.sleeps_elsewhere(ring, set_.get())) parker_.reset();  // a late signal, for an earlier owner
    if (events_.listen(parker_)) return true;
    parker_.awake(engine_.platform);
    return false;
  }

  void hear_no_more() {
    events_.hear_no_more();
    parker_.awake(engine_.platform);
    set_->quiet();
  }

  /// Finds a place from where the program will be woken: on the drivers (armed), or beside another thread (occupied).
  Begin begin() {
    for (;;) {
      // The on-demand thread sleeps on the drivers in the program's place, and leaves without a word when it is idle.
      if (engine_.progress.on_demand.asleep()) {
        constexpr std::uint64_t soon_ns = 1'000'000;
        engine_.relieve_on_demand_thread();
        engine_.sleeper.await_release(soon_ns);
      }
      const Begin begun = try_begin();
      if (begun != Begin::occupied || is_woken_by_another()) return begun;
      engine_.platform.yield();
    }
  }

  /// Tries to sleep on the drivers, or beside the thread that does.
  Begin try_begin() {
    const std::lock_guard guard(program_sleep().mutex);
    ProgramSleeper* const before = program_sleep().sleeper.load(std::memory_order_relaxed);
    if (before == nullptr) program_sleep().sleeper.store(this, std::memory_order_relaxed);  // seen with the claim
    Begin begun = engine_.begin_sleep();
    if (begun == Begin::armed && engine_.sleeper.must_not_sleep()) {
      engine_.end_sleep();
      begun = Begin::busy;
    }
    if (begun == Begin::armed) {
      set_->watch(engine_.descriptor());
      state_ = State::on_drivers;
      return begun;
    }
    if (before == nullptr) program_sleep().sleeper.store(nullptr, std::memory_order_release);
    if (begun == Begin::occupied) {
      engine_.progress.waiters.add(parker_);
      state_ = State::beside;
    }
    return begun;
  }

  /// The drivers are occupied. Returns true if their sleeper wakes this program when it leaves. Else it may have left
  /// already.
  bool is_woken_by_another() {
    const std::lock_guard guard(program_sleep().mutex);
    if (!engine_.progress.waiters.token_free() || engine_.progress.worker.active() ||
        program_sleep().sleeper.load(std::memory_order_relaxed) != nullptr)
      return true;
    engine_.progress.waiters.remove(parker_);
    state_ = State::disarmed;
    return false;
  }

  void leave_drivers() {
    set_->unwatch(engine_.descriptor());
    engine_.end_sleep();
    program_sleep().sleeper.store(nullptr, std::memory_order_release);  // acquire: a thread that found the claim taken
    engine_.progress.waiters.exit();
  }

  void leave() override {
    leave_drivers();
    engine_.progress.waiters.add(parker_);
    state_ = State::beside;
  }

  Engine& engine_;
  Events events_;
  std::unique_ptr<WakeSet> set_;
  ltask::Parker& parker_;
  State state_ = State::disarmed;  ///< guarded by ProgramSleep::mutex
};

}  // namespace canele::comm::post
