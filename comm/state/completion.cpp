// SPDX-License-Identifier: BSD-3-Clause
//
// Completion of requests: changes the state once, wakes the waiter, and runs the callback outside the lock. Also
// records events, for tracing and counters.
//
// publish() and finish() are called under the lock; deliver() by the thread that runs the task.
//
// After the atomic operation that publishes `finalized`, the request may be gone. The exception: this thread set the
// queued bit in the same operation. Then the request lives until its callback has had the last event.
#include "comm/state/context.hpp"
#include "comm/state/staged.hpp"

namespace canele::comm {
namespace {

void deliver_task(ltask::Task& task);

}  // namespace

constinit thread_local int callbacks_on_this_thread = 0;

void Context::publish_to_listeners(Request& request, unsigned events) {
  std::uint64_t seen = request.word.load(std::memory_order_relaxed);
  Staged* const staged = (seen & RequestWord::staged_bit) != 0 ? &staged_of(request) : nullptr;
  if (staged != nullptr) [[unlikely]] {
    const bool cancelling = (events & event::finalized) != 0 && (seen & RequestWord::cancel_bit) != 0;
    if (!cancelling && !staged->may_publish(*staged, *this, request, events)) return;
  }
  std::uint64_t next;
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
  if (parker != nullptr) after_unlock.wake(*parker);
  if (staged != nullptr && (events & event::finalized) != 0) [[unlikely]]
    staged->ended_publishing(*staged);
}

void Context::queue_delivery(Request& request) {
  request.prepare(deliver_task);
  tasks.submit(request);
}

namespace {

void deliver_task(ltask::Task& task) {
  auto& request = static_cast<Request&>(static_cast<DeliveryTask&>(task));
  request.context->deliver(request);
}

}  // namespace

void Context::deliver(Request& request) {
  std::uint64_t seen = request.word.load(std::memory_order_acquire);
  for (;;) {
    const unsigned due = RequestWord::due(seen);
    if (due == 0) {
      if (request.word.compare_exchange_weak(seen, seen & ~RequestWord::queued_bit, std::memory_order_acq_rel)) return;
      continue;
    }
    const std::uint64_t next = seen | (std::uint64_t{due} << RequestWord::delivered_shift);
    // Read for this use of the request: once the event is marked as delivered, the program may register for the next
    // use.
    const canele_callback_fn callback = request.callback;
    void* const argument = request.argument;
    if (!request.word.compare_exchange_weak(seen, next, std::memory_order_acq_rel)) continue;
    counters.add_shared(Counter::callbacks);
    ++callbacks_on_this_thread;
    callback(public_of(request), due, argument);
    --callbacks_on_this_thread;
    if ((due & event::finalized) != 0) return;  // the request may be gone
    seen = request.word.load(std::memory_order_acquire);
  }
}

void Context::trace_slowly(Event kind, int peer, const Session* session, std::uint64_t tag, std::uint64_t length) {
  const auto number = session == nullptr ? EventLog::no_session : static_cast<std::uint16_t>(session->wire);
  event_log->add({platform.now_ns(), tag, length, peer, number, kind, 0});
}

void Context::count_failure(int error) {
  if (error == CANELE_ECANCELED) counters.add(Counter::cancelled);
  if (error == CANELE_ETRUNC) counters.add(Counter::truncated);
}

}  // namespace canele::comm
