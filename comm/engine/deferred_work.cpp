// SPDX-License-Identifier: BSD-3-Clause
//
// The list of deferred work.
//
// Objects are taken out one at a time under the mutex, and resumed without it, because resuming posts messages.
#include "comm/engine/deferred_work.hpp"

#include <algorithm>
#include <cassert>

namespace canele::comm {

void DeferredWorkList::add(DeferredWork& one) {
  assert(one.deadline_ns != 0 && "0 stands for an empty list");
  const std::lock_guard guard(mutex_);
  one.listed = true;
  one.prev = nullptr;
  one.next = first_;
  if (first_ != nullptr) first_->prev = &one;
  first_ = &one;
  earliest_.store(std::min(earliest_ns(), one.deadline_ns), std::memory_order_relaxed);
}

void DeferredWorkList::unlink(DeferredWork& one) {
  (one.prev != nullptr ? one.prev->next : first_) = one.next;
  if (one.next != nullptr) one.next->prev = one.prev;
  one.listed = false;
  std::uint64_t earliest = first_ == nullptr ? 0 : never;
  for (const DeferredWork* left = first_; left != nullptr; left = left->next)
    earliest = std::min(earliest, left->deadline_ns);
  earliest_.store(earliest, std::memory_order_relaxed);
}

bool DeferredWorkList::remove(DeferredWork& one) {
  const std::lock_guard guard(mutex_);
  if (!one.listed) return false;
  unlink(one);
  return true;
}

/// Takes out and holds one object whose deadline is not after `latest_ns`. Returns nullptr if none is left. An object
/// whose hold() fails has ended and is about to be removed.
std::pair<DeferredWork*, std::shared_ptr<void>> DeferredWorkList::take(std::uint64_t latest_ns) {
  const std::lock_guard guard(mutex_);
  for (DeferredWork* one = first_; one != nullptr; one = one->next) {
    if (one->deadline_ns > latest_ns) continue;
    std::shared_ptr<void> keeps = one->hold();
    if (keeps == nullptr) continue;
    unlink(*one);
    return {one, std::move(keeps)};
  }
  return {};
}

bool DeferredWorkList::resume(DeferredWork::Because because, std::uint64_t now_ns) {
  const std::uint64_t latest = because == DeferredWork::Because::expired ? now_ns : never;
  bool some = false;
  for (;;) {
    const auto [one, keeps] = take(latest);
    if (one == nullptr) return some;
    some = one->resume(because, now_ns) || some;
  }
}

}  // namespace canele::comm
