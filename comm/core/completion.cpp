// SPDX-License-Identifier: BSD-3-Clause
//
// Completion: a request's state changes once, its waiter is woken, its callback runs outside the lock.
//
// Threads: publish and finish under the lock; deliver by whoever runs the task.
// Surprise: after the atomic operation that publishes `finalized` the request may be gone, unless this thread set
//     the queued bit in the same operation: then the request is alive until its callback has had the last event.
#include "comm/core/engine.hpp"

namespace canele::comm {
namespace {

thread_local int depth = 0;

void deliver_task(ltask::Task& task) {
  auto& request = static_cast<Request&>(static_cast<DeliveryTask&>(task));
  request.engine->deliver(request);
}

}  // namespace

int callback_depth() { return depth; }

void Engine::publish(Request& request, unsigned events) {
  std::uint64_t seen = request.word.load(std::memory_order_relaxed);
  std::uint64_t next;
  if (&request == being_posted && seen == 0) {  // its poster is this thread: no need for an atomic operation
    request.word.store(events, std::memory_order_release);
    return;
  }
  // nobody wants a callback, waits asleep, or cancels: the common case
  if (seen == 0 && request.word.compare_exchange_strong(seen, events, std::memory_order_acq_rel)) return;
  do {
    if ((events & event::finalized) != 0 && (seen & RequestWord::cancel_bit) != 0) return;  // run(cancel) publishes
    assert((RequestWord::happened(seen) & event::finalized) == 0 && "a request completes once");
    next = seen | events;
    if (RequestWord::due(next) != 0) next |= RequestWord::queued_bit;
  } while (!request.word.compare_exchange_weak(seen, next, std::memory_order_acq_rel, std::memory_order_relaxed));

  ltask::Parker* parker = (events & event::finalized) != 0 ? RequestWord::parker(seen) : nullptr;
  if ((next & RequestWord::queued_bit) != 0 && (seen & RequestWord::queued_bit) == 0) {
    queue_delivery(request);
  }
  if (parker != nullptr) departures.wake(*parker);
}

void Engine::queue_delivery(Request& request) {
  request.prepare(deliver_task);
  tasks.submit(request);
}

void Engine::finish(Request& request, int error) {
  assert(request.stage != Request::Stage::idle && "a request ends once");
  request.status_error = error;
  request.stage = Request::Stage::idle;
  --request.session->pending;
  if (request.kind == Request::Kind::send) --pending_sends;
  if (error == CANELE_ECANCELED) counters.add(Counter::cancelled);
  if (error == CANELE_ETRUNC) counters.add(Counter::truncated);
  const unsigned both = event::received | event::finalized;
  publish(request, request.kind == Request::Kind::receive ? both : event::finalized);
}

void Engine::deliver(Request& request) {
  std::uint64_t seen = request.word.load(std::memory_order_acquire);
  for (;;) {
    const unsigned due = RequestWord::due(seen);
    if (due == 0) {
      if (request.word.compare_exchange_weak(seen, seen & ~RequestWord::queued_bit, std::memory_order_acq_rel)) return;
      continue;
    }
    const std::uint64_t next = seen | (std::uint64_t{due} << RequestWord::delivered_shift);
    if (!request.word.compare_exchange_weak(seen, next, std::memory_order_acq_rel)) continue;
    const canele_callback_fn callback = request.callback;
    void* const argument = request.argument;
    counters.add_shared(Counter::callbacks);
    ++depth;
    callback(public_of(request), due, argument);
    --depth;
    if ((due & event::finalized) != 0) return;  // the request may be gone
    seen = request.word.load(std::memory_order_acquire);
  }
}

}  // namespace canele::comm
