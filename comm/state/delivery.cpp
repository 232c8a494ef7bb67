// SPDX-License-Identifier: BSD-3-Clause
//
// Delivery of completions.
#include "comm/state/delivery.hpp"

#include <algorithm>
#include <utility>

#include "comm/state/completion_counter.hpp"
#include "comm/state/completion_queue.hpp"
#include "comm/state/condition.hpp"
#include "comm/state/context.hpp"
#include "comm/state/one_sided.hpp"
#include "comm/state/spin_guard.hpp"

namespace canele::comm {
namespace {

std::uint32_t amount_of(const canele_completion_t& to) { return std::max<std::uint32_t>(1, to.bits); }
unsigned events_of(const canele_completion_t& to) { return to.bits == 0 ? event::finalized : to.bits; }
std::uint32_t number_in(const void* user) { return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(user)); }
void* as_pointer(std::uint32_t number) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(number)); }

void add_to_counter(canele_request_t* request, unsigned /*events*/, void* argument) {
  const Request& r = request_of(request);
  static_cast<CompletionCounter*>(argument)->add(number_in(r.user), r.status_error);
}

void set_condition(canele_request_t* request, unsigned /*events*/, void* argument) {
  static_cast<Condition*>(argument)->signal(static_cast<std::uint16_t>(number_in(request_of(request).user)));
}

/// Delivers a completion that goes to a counter or a condition; others have no such object.
void signal_object(const canele_completion_t& to, int error) {
  if (to.kind == CANELE_COMPLETE_COUNTER) {
    static_cast<CompletionCounter*>(to.object)->add(amount_of(to), error);
  } else if (to.kind == CANELE_COMPLETE_CONDITION) {
    static_cast<Condition*>(to.object)->signal(static_cast<std::uint16_t>(to.bits));
  }
}

/// Delivers the completion of a pooled request, and gives the request back.
void pooled_ended(canele_request_t* request, unsigned events, void* /*argument*/) {
  auto& r = static_cast<PooledRequest&>(request_of(request));
  const canele_completion_t done = r.done;
  const int error = r.status_error;
  RequestPool& pool = r.context->request_pool;
  if (done.kind == CANELE_COMPLETE_QUEUE) {  // the thread that takes the entry gives the request back
    r.user = done.user;
    transition(r, Request::Stage::listed);
    return static_cast<CompletionQueue*>(done.object)->push(r, QueueNode::Owner::pooled, r.context->platform);
  }
  if (done.kind == CANELE_COMPLETE_CALLBACK && (events & events_of(done)) != 0)
    done.callback(request, events & events_of(done), done.user);
  if ((events & event::finalized) == 0) return;
  const SessionErrors to = r.errors;
  pool.give_back(r);
  if (done.kind == CANELE_COMPLETE_NONE && error != CANELE_OK && to.callback != nullptr)
    to.callback(to.session, to.peer, error, to.argument);
  signal_object(done, error);
}

}  // namespace

Listening listening_of(const canele_completion_t& done) {
  switch (done.kind) {
    case CANELE_COMPLETE_CALLBACK:
      return {events_of(done), done.callback, done.user, nullptr};
    case CANELE_COMPLETE_QUEUE:
      return {event::finalized, push_to_queue, done.object, done.user};
    case CANELE_COMPLETE_COUNTER:
      return {event::finalized, add_to_counter, done.object, as_pointer(amount_of(done))};
    case CANELE_COMPLETE_CONDITION:
      return {event::finalized, set_condition, done.object, as_pointer(done.bits)};
    default:
      return {};
  }
}

Listening listening_of(PooledRequest& request) {
  const unsigned also = request.done.kind == CANELE_COMPLETE_CALLBACK ? events_of(request.done) : 0;
  return {event::finalized | also, pooled_ended, nullptr, nullptr};
}

void deliver_now(Request& request, const Listening& listening) {
  if ((listening.mask & event::finalized) == 0) return;
  keep(request, listening);
  request.tell();
  ++callbacks_on_this_thread;
  listening.callback(public_of(request), event::finalized, listening.argument);
  --callbacks_on_this_thread;
}

void deliver(const canele_completion_t& then, QueueNode& node, int error) {
  switch (then.kind) {
    case CANELE_COMPLETE_CALLBACK:
      ++callbacks_on_this_thread;
      then.callback(nullptr, event::finalized, then.user);
      --callbacks_on_this_thread;
      break;
    case CANELE_COMPLETE_QUEUE:
      static_cast<CompletionQueue*>(then.object)->push(node, QueueNode::Owner::counter, posix_platform());
      break;
    default:
      signal_object(then, error);
      break;
  }
}

namespace {

void deliver_one(one_sided::Notification& one) {
  Context& context = *one.context;
  if (one.then.kind == CANELE_COMPLETE_QUEUE) {  // the thread that takes the entry reports it
    static_cast<CompletionQueue*>(one.then.object)->push(one, QueueNode::Owner::notification, context.platform);
    return;
  }
  deliver(one.then, one, CANELE_OK);
  context.submit(one);
}

/// Delivers what is in the list. One thread at a time.
void deliver_all(ltask::Task& task) {
  auto& delivery = static_cast<one_sided::Delivery&>(task);
  for (;;) {
    one_sided::Notification* next = nullptr;
    {
      const SpinGuard guard(delivery.taken, delivery.context->platform);
      next = delivery.first;
      delivery.running = next != nullptr;
      if (next == nullptr) return;  // from here on another thread may submit the task
      delivery.first = next->next_free;
    }
    deliver_one(*next);
  }
}

}  // namespace

bool deliver_under_lock(Context& context, const canele_completion_t& then) {
  if (then.kind != CANELE_COMPLETE_COUNTER) return false;
  one_sided::Delivery& delivery = context.one_sided.delivery;
  {
    const SpinGuard guard(delivery.taken, context.platform);
    if (delivery.running) return false;
  }
  return static_cast<CompletionCounter*>(then.object)->add_under_lock(amount_of(then), context.after_unlock);
}

void deliver_in_order(one_sided::Delivery& delivery, one_sided::Notification& notification) {
  Context& context = *notification.context;
  notification.next_free = nullptr;
  {
    const SpinGuard guard(delivery.taken, context.platform);
    (delivery.first != nullptr ? delivery.last->next_free : delivery.first) = &notification;
    delivery.last = &notification;
    if (std::exchange(delivery.running, true)) return;
  }
  delivery.context = &context;
  delivery.prepare(deliver_all);
  context.tasks.submit(delivery);
}

void push_to_queue(canele_request_t* request, unsigned /*events*/, void* argument) {
  Request& r = request_of(request);
  transition(r, Request::Stage::listed);  // a post rejects this stage
  static_cast<CompletionQueue*>(argument)->push(r, QueueNode::Owner::request, r.context->platform);
}

}  // namespace canele::comm
