// SPDX-License-Identifier: BSD-3-Clause
//
// Completion queues: adding, taking, waiting.
#include "comm/post/completion_queue.hpp"

#include "comm/engine/engine.hpp"
#include "comm/post/completion_counter.hpp"
#include "comm/post/error.hpp"
#include "comm/post/wait.hpp"

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

}  // namespace

void CompletionQueue::push(QueueNode& node, QueueNode::Owner owner, Platform& platform) {
  ltask::Parker* parker = nullptr;
  {
    const SpinGuard guard(taken_, platform);
    node.next = 0;
    (last_ != nullptr ? last_->next : first_) = link_to(node, owner);
    last_ = &node;
    if (waiters_ != nullptr) {
      ListedWaiter& waiter = *waiters_;
      waiters_ = waiter.next;
      if (waiters_ == nullptr) last_waiter_ = nullptr;
      parker = waiter.wake();
    }
  }
  if (parker != nullptr) parker->signal(platform);
}

bool CompletionQueue::enlist(ListedWaiter& waiter, Platform& platform) {
  const SpinGuard guard(taken_, platform);
  if (first_ != 0) return false;
  (last_waiter_ != nullptr ? last_waiter_->next : waiters_) = &waiter;
  last_waiter_ = &waiter;
  return true;
}

void CompletionQueue::dismiss(ListedWaiter& waiter, Platform& platform) {
  const SpinGuard guard(taken_, platform);
  if (!unlist(waiters_, waiter) || last_waiter_ != &waiter) return;
  last_waiter_ = waiters_;
  while (last_waiter_ != nullptr && last_waiter_->next != nullptr) last_waiter_ = last_waiter_->next;
}

int take_entries(Engine& engine, CompletionQueue& queue, canele_entry_t* entries, int max) {
  return queue.take(max, engine.platform, [&](int index, CompletionQueue::Taken taken) {
    entries[index] = canele_entry_t{};
    if (taken.owner == QueueNode::Owner::counter) return take_counter(*taken.node, entries[index]);
    take_request(static_cast<Request&>(*taken.node), entries[index], taken.owner == QueueNode::Owner::pooled);
  });
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

}  // namespace canele::comm::post
