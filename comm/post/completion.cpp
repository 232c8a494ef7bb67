// SPDX-License-Identifier: BSD-3-Clause
//
// Entries of completion queues; the waits for queues and counters.
#include "comm/post/completion.hpp"

#include <string>

#include "comm/post/error.hpp"
#include "comm/post/wait.hpp"
#include "comm/state/active_blocks.hpp"

namespace canele::comm::post {
namespace {

/// Writes what the request tells, and gives the request back: to the program, or to the pool.
void take_request(Request& request, canele_entry_t& entry, bool pooled) {
  entry.user = static_cast<QueueNode&>(request).user;
  entry.request = pooled ? nullptr : public_of(request);
  entry.kind = CANELE_ENTRY_REQUEST;
  entry.error = request.status_error;
  entry.source = request.rank;
  entry.tag = request.status_tag;
  entry.length = request.status_length;
  transition(request, Request::Stage::idle);
  request.callback = nullptr;
  if (pooled) request.context->request_pool.give_back(static_cast<PooledRequest&>(request));
}

void take_counter(QueueNode& node, canele_entry_t& entry) {
  CompletionCounter& counter = CompletionCounter::of(node);
  int first = CANELE_OK;
  counter.errors(&first);
  entry.user = node.user;
  entry.kind = CANELE_ENTRY_COUNTER;
  entry.error = first;
  entry.source = -1;
  entry.immediate = counter.value();
}

void take_notification(const one_sided::Notification& notification, canele_entry_t& entry) {
  entry.user = notification.user;
  entry.kind = CANELE_ENTRY_NOTIFICATION;
  entry.source = notification.source;
  entry.slot = notification.slot;
  entry.tag = notification.offset;
  entry.length = notification.length;
  entry.immediate = notification.immediate;
}

/// The block now belongs to the program. The receiver of its messages may go on.
void take_active_message(ActiveBlock& block, canele_entry_t& entry) {
  entry.user = block.user;
  entry.kind = CANELE_ENTRY_ACTIVE_MESSAGE;
  entry.error = block.message.error;
  entry.source = block.message.source;
  entry.tag = block.message.id;
  entry.length = block.message.payload_length;
  entry.payload = block.payload();
}

/// Tells the protocols what the program has taken, not under the lock of the queue.
void report_taken(Engine& engine, one_sided::Notification* notifications, ActiveBlock* messages) {
  while (messages != nullptr) {
    ActiveBlock& one = *messages;
    messages = one.next_free;
    one.blocks->taken();
  }
  if (notifications == nullptr) return;
  do {
    one_sided::Notification& one = *notifications;
    notifications = one.next_free;
    engine.submit(one);
  } while (notifications != nullptr);
  engine.after_submit();
}

}  // namespace

int take_entries(Engine& engine, CompletionQueue& queue, canele_entry_t* entries, int max) {
  one_sided::Notification* notifications = nullptr;
  ActiveBlock* messages = nullptr;
  const int count = queue.take(max, engine.platform, [&](int index, CompletionQueue::Taken taken) {
    entries[index] = canele_entry_t{};
    if (taken.owner == QueueNode::Owner::notification) {
      auto& one = static_cast<one_sided::Notification&>(*taken.node);
      take_notification(one, entries[index]);
      one.next_free = notifications;
      notifications = &one;
      return;
    }
    if (taken.owner == QueueNode::Owner::active_message) {
      auto& block = static_cast<ActiveBlock&>(*taken.node);
      take_active_message(block, entries[index]);
      block.next_free = messages;
      messages = &block;
      return;
    }
    if (taken.owner == QueueNode::Owner::counter) return take_counter(*taken.node, entries[index]);
    take_request(static_cast<Request&>(*taken.node), entries[index], taken.owner == QueueNode::Owner::pooled);
  });
  if (notifications != nullptr || messages != nullptr) report_taken(engine, notifications, messages);
  return count;
}

int wait_for_entries(Engine& engine, CompletionQueue& queue, canele_entry_t* entries, int max, std::uint64_t deadline) {
  for (;;) {
    const int count = take_entries(engine, queue, entries, max);
    if (count > 0) return count;
    ListedWaiter self;
    if (!queue.enlist(self, engine.platform)) continue;
    const int code = wait_until(engine, self.target(), deadline, BlockedThread::In::queue);
    queue.dismiss(self, engine.platform);
    if (code == CANELE_OK) continue;  // an entry came; another thread may have taken it
    const int last = take_entries(engine, queue, entries, max);
    return last > 0 ? last : code;
  }
}

int wait_for_count(Engine& engine, CompletionCounter& counter, std::uint64_t threshold, std::uint64_t deadline) {
  ListedWaiter self;
  self.threshold = threshold;
  if (counter.enlist(self)) {
    const int code = wait_until(engine, self.target(), deadline, BlockedThread::In::counter);
    if (code != CANELE_OK && counter.dismiss(self)) return code;
    while (!self.woken()) engine.platform.yield();  // the thread that adds has the waiter in its list
  }
  int first = CANELE_OK;
  counter.errors(&first);
  return first;
}

int check_completion(const canele_completion_t& done, const char* call) {
  const auto reject = [call](const std::string& what) {  // only here memory is allocated
    return error(CANELE_EINVAL, std::string(call) + ": the completion " + what);
  };
  switch (done.kind) {
    case CANELE_COMPLETE_POLL:
    case CANELE_COMPLETE_NONE:
      return CANELE_OK;
    case CANELE_COMPLETE_CALLBACK:
      if (done.callback == nullptr) return reject("CALLBACK has callback = NULL");
      if ((done.bits & ~event::all) == 0) return CANELE_OK;
      return reject("CALLBACK has unknown events in bits = " + std::to_string(done.bits));
    case CANELE_COMPLETE_CONDITION:
      if (done.bits == 0 || done.bits > UINT16_MAX)
        return reject("CONDITION has bits = " + std::to_string(done.bits) + "; expected: 1 to 65535");
      [[fallthrough]];
    case CANELE_COMPLETE_QUEUE:
    case CANELE_COMPLETE_COUNTER:
      return done.object != nullptr ? CANELE_OK : reject("has object = NULL");
    default:
      return reject("has kind " + std::to_string(done.kind) + "; expected: one of enum canele_completion_kind");
  }
}

}  // namespace canele::comm::post
