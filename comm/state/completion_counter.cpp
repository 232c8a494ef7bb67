// SPDX-License-Identifier: BSD-3-Clause
//
// Completion counters.
#include "comm/state/completion_counter.hpp"

#include <cstddef>
#include <utility>

#include "comm/state/delivery.hpp"
#include "comm/state/spin_guard.hpp"

namespace canele::comm {

namespace {

/// Ends the waits of the listed threads. Calls unpark(parker) for each that sleeps.
template <typename Unpark>
void wake_all(ListedWaiter* woken, Unpark unpark) {
  while (woken != nullptr) {
    ListedWaiter* const next = woken->next;
    if (ltask::Parker* const parker = woken->wake(); parker != nullptr) unpark(*parker);
    woken = next;
  }
}

}  // namespace

std::size_t CompletionCounter::offset_of_node() { return offsetof(CompletionCounter, node_); }

void CompletionCounter::init(std::uint64_t threshold, const canele_completion_t& then) {
  reached_ = threshold == 0;
  first_error_ = CANELE_OK;
  value_ = errors_ = 0;
  threshold_ = threshold;
  waiters_ = nullptr;
  then_ = then;
  node_ = {0, then.user};
  taken_.store(false, std::memory_order_relaxed);
}

void CompletionCounter::add(std::uint64_t n, int error) {
  ListedWaiter* woken = nullptr;
  bool reaches = false;
  int first = CANELE_OK;
  canele_completion_t then{};
  {
    const SpinGuard guard(taken_, posix_platform());
    value_ += n;
    if (error != CANELE_OK && std::exchange(errors_, errors_ + n) == 0) first_error_ = error;
    reaches = value_ >= threshold_ && !std::exchange(reached_, true);
    if (reaches) then = then_;
    first = first_error_;
    woken = unlist_reached();
  }
  // From here on a thread that has read the value may free the counter, unless `then` is an entry of a queue.
  wake_all(woken, [](ltask::Parker& parker) { parker.signal(posix_platform()); });
  if (reaches) deliver(then, node_, first);
}

bool CompletionCounter::add_under_lock(std::uint64_t n, PostUnlockActions& after_unlock) {
  ListedWaiter* woken = nullptr;
  {
    const SpinGuard guard(taken_, posix_platform());
    if (!reached_ && value_ + n >= threshold_) return false;
    value_ += n;
    woken = unlist_reached();
  }
  wake_all(woken, [&after_unlock](ltask::Parker& parker) { after_unlock.wake(parker); });
  return true;
}

/// Takes the waiters whose value is reached out of the list, and returns them as a list.
ListedWaiter* CompletionCounter::unlist_reached() {
  ListedWaiter* reached = nullptr;
  for (ListedWaiter** at = &waiters_; *at != nullptr;) {
    ListedWaiter& waiter = **at;
    if (waiter.threshold > value_) {
      at = &waiter.next;
      continue;
    }
    *at = waiter.next;
    waiter.next = reached;
    reached = &waiter;
  }
  return reached;
}

std::uint64_t CompletionCounter::value() const {
  const SpinGuard guard(taken_, posix_platform());
  return value_;
}

std::uint64_t CompletionCounter::errors(int* first) const {
  const SpinGuard guard(taken_, posix_platform());
  if (first != nullptr) *first = first_error_;
  return errors_;
}

bool CompletionCounter::enlist(ListedWaiter& waiter) {
  const SpinGuard guard(taken_, posix_platform());
  if (value_ >= waiter.threshold) return false;
  waiter.next = waiters_;
  waiters_ = &waiter;
  return true;
}

bool CompletionCounter::dismiss(ListedWaiter& waiter) {
  const SpinGuard guard(taken_, posix_platform());
  return unlist(waiters_, waiter);
}

}  // namespace canele::comm
