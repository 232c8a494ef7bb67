// SPDX-License-Identifier: BSD-3-Clause
//
// The short wait: the waiting thread polls memory-only drivers, expecting that its event happens soon.
//
// Used by post/wait, and by collectives/blocking_executor, which already holds the lock. Any thread may call it; it
// takes the engine's lock, or gives up.
//
// This is a header because canele_wait() is all that stands between a message and its user: the compiler makes one
// function of it.
#pragma once

#include <type_traits>

#include "comm/engine/engine.hpp"
#include "comm/engine/flush.hpp"

namespace canele::comm {

[[gnu::always_inline]] inline Engine::Spin Engine::plan_spin() {
  const int others = progress.waiters.present();
  progress.waiters.contention.follow(platform, others == 0 && !oversubscribed);
  if (others != 0) [[unlikely]]
    return plan_spin_beside(others);
  int turns = spin_turns();
  if (oversubscribed) turns = 1;  // what is not there by now usually comes from the thread that gets this core next
  return {turns, others};
}

template <typename Done>
[[gnu::always_inline]] inline bool Engine::spin_locked(Spin spin, Done happened) {
  constexpr int few_more = 6;
  bool done = false;
  for (int turns = spin.turns; turns > 0; --turns) {
    int events = 0;
    for (DriverInstance* instance : driver_set.polled) events += instance->driver->poll(spin.packets);
    if constexpr (std::is_invocable_v<Done, int>) {
      done = happened(events);
    } else {
      done = happened();
    }
    // Events that are not for this thread are for another waiting thread, which takes over soon.
    if (spin.others != 0 && events > 0 && turns > few_more) turns = few_more;
    if (done || after_unlock.due() || tasks.has_work() || !delayed_rails.empty() || !large.deferred_copies.empty())
      break;
    if (lock.pending()) serve_some_linked();
    if (!backlogged_peers.empty()) flush_backlogged();
  }
  return done;
}

template <typename Done>
[[gnu::always_inline]] inline bool Engine::spin_until(Done happened) {
  const Spin spin = plan_spin();
  if (spin.turns == 0 || !try_lock()) return false;
  const bool done = spin_locked(spin, happened);
  unlock_idle();
  return done;
}

template <typename Done>
bool Engine::spin_again(Done happened) {
  if (oversubscribed || !try_lock()) return false;
  const bool done = spin_locked({spin_turns(), 0}, happened);
  unlock_idle();
  return done;
}

}  // namespace canele::comm
