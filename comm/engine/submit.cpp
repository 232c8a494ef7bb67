// SPDX-License-Identifier: BSD-3-Clause
//
// The engine's lock, the submissions linked to it, and what follows when it is released.
//
// Any thread. The holder runs what other threads have linked before it releases the lock, so that no thread ever waits.
// A budget limits that work. When it is used up, the holder puts the lock down with the rest, and the next thread goes
// on.
//
// The backlogs are flushed after a whole batch, so that sends linked together can leave in one packet.
#include <utility>

#include "comm/engine/engine.hpp"
#include "comm/engine/flush.hpp"
#include "comm/link/transmit.hpp"
#include "comm/protocol/one_sided_origin.hpp"
#include "comm/protocol/receive.hpp"
#include "comm/protocol/send.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm {

constinit thread_local int PostOnlyScope::depth = 0;

namespace {

constexpr int most_served = 32;  ///< operations that a holder runs for other threads before it hands over

}  // namespace

void Engine::lock_for_callback() {
  for (unsigned turn = 1; !lock.try_lock(); ++turn) {
    if (serve_left()) {
      continue;
    } else if (turn % 64 != 0) {
      platform.relax();
    } else {
      platform.yield();  // the holder may have lost its core
    }
  }
  note_lock_taken();
  if (!receive_prefetch.empty()) [[unlikely]]
    receive_prefetch.drain(*this);
}

void Engine::enable_lock_bias(bool yes) {
  constexpr std::uint32_t row = 4096;  // revoking a bias costs as much as some hundred ordinary turns
  const bool tells_them_apart = platform.has_system_threads() && ltask::AsymmetricFences::available();
  lock_for_callback();
  lock.bias_after(yes && tells_them_apart ? row : 0);
  unlock();
}

void Engine::unlock_slowly() {
  PostUnlockActions due;
  bool left_over = false;
  int served = 0;
  for (;;) {
    flush_backlogged();
    if (after_unlock.due()) due.take(after_unlock);
    if (!lock.has_rest() && lock.try_unlock()) break;
    if (served >= most_served) {
      left_over = true;
      lock.put_down();
      break;
    }
    CANELE_COVER(linked_work_at_unlock);
    served += run_next_linked(most_served - served);
  }
  note_lock_left();
  if (const int threads = due.due() ? due.run(platform) : 0; threads != 0) {
    progress.woken.fetch_add(static_cast<unsigned>(threads), std::memory_order_relaxed);
    progress.waiters.heuristics.woke(threads);
  }
  if (left_over) [[unlikely]]
    call_for_progress();
  if (served != 0) [[unlikely]]
    pass_on_linked();
}

/// Passes on what the work that other threads have linked has staged and submitted. They count on the holder, which may
/// be about to return to the program.
void Engine::pass_on_linked() {
  serve_staged();
  if (tasks.has_work()) leave_tasks();
}

/// Wakes a thread for a lock that was put down with work in it, or for packets that are still staged. The next thread
/// that posts, waits or polls takes these over. If there is no other, it is the thread that sleeps on the drivers, or
/// the on-demand thread. Without these (CANELE_WORKER=none) the work waits for a call.
void Engine::call_for_progress() {
  sleeper.wake();
  wake_on_demand_thread();
}

bool Engine::serve_left() {
  if (!lock.try_inherit()) return false;
  note_lock_taken();
  unlock_slowly();
  return true;
}

int Engine::run_next_linked(int most) {
  int count = 0;
  for (; count < most; ++count) {
    ltask::SubmitLock::Node* const node = lock.next_linked();
    if (node == nullptr)
      return lock.has_rest() ? most : count;  // so many are linked that it was all work to order some
    counters.add(Counter::lock_queued);
    run(static_cast<Op&>(*node));  // this may end its life
  }
  return count;
}

/// For a holder that polls. If it must hand over, its unlocking does so.
void Engine::serve_some_linked() {
  run_next_linked(most_served);
  if (lock.has_rest()) after_unlock.go_on();
}

void Engine::submit(Op& op) {
  using Entry = ltask::SubmitLock::Entry;
  const Entry entry = lock.lock_or_push(op);
  if (entry == Entry::linked) {  // the holder runs it
    CANELE_COVER(left_to_the_holder);
    return;
  }
  note_lock_taken();
  if (entry == Entry::inherited) {
    unlock_slowly();
    return;
  }
  counters.add(Counter::lock_taken);
  run(op);
  flush_backlogged();
  const bool blocked = std::exchange(credit.just_blocked, false);
  unlock();
  if (blocked && callback_depth() == 0) [[unlikely]]
    step();  // credit may have arrived, and a thread that only sends would never process it
}

void Engine::run_or_leave_tasks() {
  if (callback_depth() == 0 && !PostOnlyScope::on_this_thread()) {
    tasks.run(32);
    serve_staged();  // the tasks may have staged packets
  }
  if (tasks.has_work()) sleeper.wake();
}

void Engine::run(Op& op) {
  if (!receive_prefetch.empty()) [[unlikely]]
    receive_prefetch.drain(*this);
  switch (op.kind) {
    case OpKind::send:
      send_path::on_send_posted(*this, static_cast<Request&>(static_cast<PostOp&>(op)));
      break;
    case OpKind::receive:
      receive_path::accept(*this, static_cast<Request&>(static_cast<PostOp&>(op)));
      break;
    case OpKind::bind:
      receive_path::bind(*this, static_cast<Request&>(static_cast<PostOp&>(op)));
      break;
    case OpKind::cancel:
      receive_path::cancel(*this, static_cast<Request&>(static_cast<CancelOp&>(op)));
      break;
    case OpKind::probe:
      receive_path::probe(*this, static_cast<ProbeOp&>(op));
      break;
    case OpKind::reprioritize:
      send_path::reprioritize(*this, static_cast<ReprioritizeOp&>(op));
      break;
    case OpKind::sent:
      link::driver_returned(*this, *static_cast<Rail::SentOp&>(op).rail);
      break;
    case OpKind::transfer_done:
      rendezvous::transfer_done(*this, static_cast<rendezvous::RmaCopy&>(op));
      break;
    case OpKind::access:
      one_sided::on_posted(*this, static_cast<Request&>(static_cast<PostOp&>(op)));
      break;
    case OpKind::complete:
      finish_begun(static_cast<Request&>(static_cast<PostOp&>(op)));
      break;
    case OpKind::call:
      static_cast<CallOp&>(op).call(*this, static_cast<CallOp&>(op));
      break;
  }
}

}  // namespace canele::comm
