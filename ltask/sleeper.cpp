// SPDX-License-Identifier: BSD-3-Clause
//
// Sleeping on descriptors.
//
// The bell rings until the sleeper is back, so a wake() before the sleep is not lost.
#include "ltask/sleeper.hpp"

namespace canele::ltask {

Sleeper::Sleeper(Platform& platform) : platform_(platform), set_(platform.make_wake_set(&error_)) {}

bool Sleeper::watch(int descriptor) { return set_->watch(descriptor); }

bool Sleeper::try_claim() noexcept {
  std::uint32_t expected = unclaimed;
  if (!claim_.compare_exchange_strong(expected, claimed, std::memory_order_seq_cst)) return false;
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the fence in occupied()
  return true;
}

void Sleeper::sleep(std::uint64_t timeout_ns, Called called) noexcept {
  if (!must_not_sleep() && !called()) set_->wait(timeout_ns);
}

void Sleeper::release() noexcept {
  set_->quiet();
  // An exchange, which acquires from wake(). The caller checks for work next, and sees the work behind each mark that
  // it erases.
  marked_.exchange(false, std::memory_order_seq_cst);
  if (claim_.exchange(unclaimed, std::memory_order_seq_cst) == awaited) platform_.unpark(claim_);
}

void Sleeper::await_release(std::uint64_t timeout_ns) noexcept {
  std::uint32_t expected = claimed;
  claim_.compare_exchange_strong(expected, awaited, std::memory_order_seq_cst);
  if (expected != unclaimed) platform_.park(claim_, awaited, timeout_ns);
}

void Sleeper::wake() noexcept {
  // An exchange: the thread that takes the mark sees the work of all threads that have set it, not only of the last
  // one.
  marked_.exchange(true, std::memory_order_seq_cst);
  if (claim_.load(std::memory_order_seq_cst) != unclaimed) set_->ring();
}

}  // namespace canele::ltask
