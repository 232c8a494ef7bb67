// SPDX-License-Identifier: BSD-3-Clause
//
// DeferredWork: work that an engine defers until a thread of the application has time for it.
//
// Example: the last levels of a broadcast. The compute threads do these better themselves than the few cores that are
// left for communication.
//
// collectives/async_executor adds and removes deferred work. post/ and api/ resume it when a thread waits or tests;
// progress.cpp resumes what has expired. Any thread may call these functions.
//
//     deferred ─┬─ a thread waits, tests, probes, finalizes ─▶ resume(), on that thread
//               ├─ its deadline has passed ─▶ resume(), on the thread that makes progress
//               └─ ended, or given up ─▶ remove()
//
// A thread that waits resumes all deferred work, whatever the thread waits for. Resuming only the awaited object could
// deadlock two ranks that wait for two objects in different orders.
//
// Deferred work also has a deadline. A program that never waits (it uses callbacks, or polls its own memory) gets the
// work done by the thread that makes progress.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace canele::comm {

class DeferredWork {
 public:
  enum class Because : std::uint8_t { thread_waits, expired };

  /// Returns what keeps the object alive until it has been resumed, or nullptr if it has ended.
  virtual std::shared_ptr<void> hold() = 0;
  /// Does, or posts, the deferred work. Returns true if there was any. The caller has called hold(); the object may be
  /// gone after the caller lets go of that.
  virtual bool resume(Because because, std::uint64_t now_ns) = 0;

  std::uint64_t deadline_ns = 0;

  // ---- links of the list
  DeferredWork *next = nullptr, *prev = nullptr;
  bool listed = false;

 protected:
  ~DeferredWork() = default;
};

/// Heartbeat of an application thread that makes progress in place of a worker. Without the heartbeat, a worker that
/// gets a core only now and then would take over the thread's own work. A worker skips one turn each time the heartbeat
/// has moved.
class Heartbeat {
 public:
  void beat() noexcept { count_.store(count_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
  bool any() const noexcept { return count_.load(std::memory_order_relaxed) != 0; }
  /// Returns whether the heartbeat has moved since the last call. Called by the worker.
  bool has_moved() noexcept {
    const std::uint64_t now = count_.load(std::memory_order_relaxed);
    if (now == seen_) return false;
    seen_ = now;
    return true;
  }

 private:
  std::atomic<std::uint64_t> count_{0};
  std::uint64_t seen_ = 0;
};

class DeferredWorkList {
 public:
  static constexpr std::uint64_t never = ~std::uint64_t{0};

  bool any() const noexcept { return earliest_.load(std::memory_order_relaxed) != 0; }
  /// Returns the earliest deadline, or `never` if the list is empty.
  std::uint64_t earliest_ns() const noexcept {
    const std::uint64_t deadline = earliest_.load(std::memory_order_relaxed);
    return deadline == 0 ? never : deadline;
  }

  /// Called in the child of a fork. Afterwards any() returns true, so that a thread that would make progress reaches
  /// the check that refuses it.
  void give_away() noexcept { earliest_.store(1, std::memory_order_relaxed); }

  void add(DeferredWork& one);
  /// Returns false if the object is not in the list any more.
  bool remove(DeferredWork& one);
  /// Resumes all deferred work, or what has expired, each object once. Returns true if there was any.
  bool resume(DeferredWork::Because because, std::uint64_t now_ns);

 private:
  void unlink(DeferredWork& one);
  std::pair<DeferredWork*, std::shared_ptr<void>> take(std::uint64_t latest_ns);

  std::atomic<std::uint64_t> earliest_{0};  ///< 0: the list is empty
  std::mutex mutex_;                        // taken only at the beginning and end of a large collective, and to resume
  DeferredWork* first_ = nullptr;
};

}  // namespace canele::comm
