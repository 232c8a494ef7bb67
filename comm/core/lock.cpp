// SPDX-License-Identifier: BSD-3-Clause
//
// The engine's lock, the submissions linked to it, and what follows when it is given up.
//
// Threads: any.
// Surprise: the holder runs what others linked before it leaves, so that nobody ever waits; pumping the peers
//     comes after a whole batch, so that sends linked together can leave together.
#include <utility>

#include "comm/core/engine.hpp"
#include "comm/protocol/flow_in.hpp"
#include "comm/protocol/receive_path.hpp"
#include "comm/protocol/rendezvous.hpp"
#include "comm/protocol/send_path.hpp"
#include "ltask/mark.hpp"

namespace canele::comm {

void Engine::lock_for_callback() {
  for (unsigned turn = 1; !lock.try_enter(); ++turn) {
    if (turn % 64 != 0) {
      platform.relax();
    } else {
      platform.yield();  // the holder may have lost its core
    }
  }
  if (!posts.empty()) [[unlikely]]
    posts.settle(*this);
}

void Engine::favour_one_thread(bool yes) {
  constexpr std::uint32_t row = 4096;  // to take a bias away costs as much as some hundred ordinary turns
  const bool tells_them_apart = platform.has_system_threads() && ltask::AsymmetricFences::available();
  lock_for_callback();
  lock.bias_after(yes && tells_them_apart ? row : 0);
  unlock();
}

void Engine::unlock_slowly() {
  Departures due;
  for (;;) {
    pump_dirty();
    if (departures.due()) due.take(departures);
    ltask::SubmitLock::Node* linked = lock.leave();
    if (linked == nullptr) break;
    CANELE_MARK(linked_work_at_unlock);
    run_linked(linked);
  }
  if (!due.due()) return;
  if (const int threads = due.run(platform); threads != 0) {
    woken.fetch_add(static_cast<unsigned>(threads), std::memory_order_relaxed);
    waiters.crowd.woke(threads);
  }
}

int Departures::run(Platform& platform) {
  for (ltask::Parker* parker : parkers_) parker->signal(platform);
  for (const auto& [driver, rank] : doorbells_) driver->wake(rank);
  if (sleeper_ != nullptr) sleeper_->wake();
  return static_cast<int>(parkers_.size());
}

void Engine::run_linked(ltask::SubmitLock::Node* node) {
  while (node != nullptr) {
    ltask::SubmitLock::Node* next = node->next;  // running it may end its life
    counters.add(Counter::lock_queued);
    run(static_cast<Op&>(*node));
    node = next;
  }
}

void Engine::submit(Op& op) {
  if (!lock.enter_or_push(op)) {  // the holder runs it
    CANELE_MARK(left_to_the_holder);
    return;
  }
  counters.add(Counter::lock_taken);
  run(op);
  pump_dirty();
  const bool look = std::exchange(credit.just_withheld, false);
  unlock();
  if (look && callback_depth() == 0) [[unlikely]]
    step();  // the credit may have come; and who only sends would never see it
}

void Engine::run_or_leave_tasks() {
  if (callback_depth() == 0 && !OnlyPosts::on_this_thread()) tasks.run(32);
  if (tasks.has_work()) sleeper.wake();
}

void Engine::run(Op& op) {
  if (!posts.empty()) [[unlikely]]
    posts.settle(*this);
  switch (op.kind) {
    case OpKind::send:
      send_path::accept(*this, static_cast<Request&>(static_cast<PostOp&>(op)));
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
      send_path::handed_over(*this, *static_cast<Rail::SentOp&>(op).rail);
      break;
    case OpKind::pulled:
      rendezvous::pulled(*this, static_cast<rendezvous::Pull&>(op));
      break;
    case OpKind::call:
      static_cast<CallOp&>(op).call(*this, static_cast<CallOp&>(op));
      break;
  }
}

void Engine::mark_dirty(Peer& p) {
  if (p.dirty) return;
  p.dirty = true;
  dirty.push_back(&p);
}

void Engine::pump_dirty() {
  if (!credit.looks.empty()) [[unlikely]]
    flow_in::refill_all(*this);
  while (!dirty.empty()) {
    Peer* p = dirty.back();
    dirty.pop_back();
    p->dirty = false;
    send_path::pump(*this, *p);
  }
}

}  // namespace canele::comm
