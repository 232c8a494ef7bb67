// SPDX-License-Identifier: BSD-3-Clause
//
// The worker's loop. The library blocks only here and in comm/post/wait.
//
// The sleep has a limit although every wake-up is armed. A driver without wake-ups needs it, and it bounds the effect
// of a bug.
#include "ltask/worker.hpp"

namespace canele::ltask {

void Worker::start() {
  const std::lock_guard guard(mutex_);
  if (thread_) return;
  stopping_.store(false, std::memory_order_relaxed);
  state_.store(State::polling, std::memory_order_release);
  thread_ = platform_.start_thread("canele-worker", [this] { loop(); });
  active_.store(thread_ != nullptr, std::memory_order_release);
}

void Worker::stop() {
  const std::lock_guard guard(mutex_);
  if (!thread_) return;
  active_.store(false, std::memory_order_release);
  stopping_.store(true, std::memory_order_release);
  progress_.wake();
  thread_.reset();  // joins
  state_.store(State::off, std::memory_order_release);
}

bool Worker::is_caller() const noexcept {
  const void* const self = self_.load(std::memory_order_relaxed);
  return self != nullptr && self == platform_.this_thread();
}

long Worker::native_id() const {
  const std::lock_guard guard(mutex_);
  return thread_ ? thread_->native_id() : 0;
}

void Worker::loop() {
  self_.store(platform_.this_thread(), std::memory_order_relaxed);
  platform_.set_slice(turn_ns);
  Idle idle(platform_, budget_, contention_, &adaptive_yield_);
  const auto told_to_stop = [](const void* self) {
    return static_cast<const Worker*>(self)->stopping_.load(std::memory_order_acquire);
  };
  while (!stopping_.load(std::memory_order_acquire)) {
    heartbeats_.store(heartbeats_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (progress_.step() > 0) {
      idle.worked();
    } else if (idle.next() == Idle::Action::sleep) {
      contention_.return_to_home_unit(platform_);
      state_.store(State::sleeping, std::memory_order_release);
      const std::uint64_t before = among_workers() ? platform_.now_ns() : 0;
      progress_.sleep(longest_sleep_ns, {told_to_stop, this});
      if (before != 0) adaptive_yield_.slept(platform_.now_ns() - before);
      unit_.store(platform_.current_unit(), std::memory_order_relaxed);
      state_.store(State::polling, std::memory_order_release);
    }
  }
  self_.store(nullptr, std::memory_order_relaxed);
}

}  // namespace canele::ltask
