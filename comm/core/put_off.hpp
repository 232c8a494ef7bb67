// SPDX-License-Identifier: BSD-3-Clause
//
// What an engine has put off until a thread of the program has time: the last levels of a broadcast, say, which the
// threads that compute do better themselves than the few cores that are left for communication.
//
// Who: collectives/run puts off and takes back; api/ resumes when a thread waits or asks, progress.cpp what is overdue.
// Threads: any.
// Surprise: any thread that waits, for whatever it may be, resumes all of it. To begin it only for who waits for this
//     very thing would let two ranks that wait for two things in different orders wait for each other. And it has a
//     date: a program that never waits (it uses callbacks, or looks at its memory) gets it from whoever makes progress.
//
//     put off ─┬─ a thread waits, tests, probes, finalizes ─▶ let_go(), on that thread
//              ├─ its date has passed ─▶ let_go(), on whoever makes progress
//              └─ ended, or given up ─▶ remove()
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace canele::comm {

class PutOff {
 public:
  enum class Because : std::uint8_t { thread_waits, overdue };

  /// What keeps it alive until it has been resumed; nullptr: it has ended.
  virtual std::shared_ptr<void> hold() = 0;
  /// Does, or posts, what was put off. True: there was something. It has been held, and may be gone afterwards.
  virtual bool resume(Because because, std::uint64_t now_ns) = 0;

  std::uint64_t date_ns = 0;  ///< when it is overdue

  // ---- of the list
  PutOff *next = nullptr, *prev = nullptr;
  bool listed = false;

 protected:
  ~PutOff() = default;
};

/// That a thread of the program makes progress where a worker would: what it does itself would else be taken from it by
/// a worker that has a core only now and then. A worker believes it for a turn each time the pulse has moved.
class ThreadPulse {
 public:
  void beat() noexcept { beats_.store(beats_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
  bool any() const noexcept { return beats_.load(std::memory_order_relaxed) != 0; }
  /// Since the last time. By the worker.
  bool has_moved() noexcept {
    const std::uint64_t now = beats_.load(std::memory_order_relaxed);
    if (now == seen_) return false;
    seen_ = now;
    return true;
  }

 private:
  std::atomic<std::uint64_t> beats_{0};
  std::uint64_t seen_ = 0;
};

class PutOffs {
 public:
  static constexpr std::uint64_t never = ~std::uint64_t{0};

  bool any() const noexcept { return earliest_.load(std::memory_order_relaxed) != 0; }
  /// When the next one is overdue; `never` if none will be.
  std::uint64_t earliest_ns() const noexcept {
    const std::uint64_t date = earliest_.load(std::memory_order_relaxed);
    return date == 0 ? never : date;
  }

  /// In the child of a fork: any() from now on, so that who would make progress comes to where it is refused.
  void give_away() noexcept { earliest_.store(1, std::memory_order_relaxed); }

  void add(PutOff& one);
  /// False: it is not there any more.
  bool remove(PutOff& one);
  /// All of it, or what is overdue, each once. True: something was put off.
  bool resume(PutOff::Because because, std::uint64_t now_ns);

 private:
  void unlink(PutOff& one);
  std::pair<PutOff*, std::shared_ptr<void>> take(std::uint64_t latest_ns);

  std::atomic<std::uint64_t> earliest_{0};  ///< 0: the list is empty
  std::mutex mutex_;                        // for who begins or ends a large collective
  PutOff* first_ = nullptr;
};

}  // namespace canele::comm
