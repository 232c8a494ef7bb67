// SPDX-License-Identifier: BSD-3-Clause
//
// SubmitLock: a lock whose word is also the head of the queue of those who found it taken.
//
// Who: the engine.
// Threads: any.
// Surprise: nobody ever waits for this lock. A post either takes it and goes on inline, or is linked for the
//     holder; unlocking fails while anything is linked. So "free" implies "queue empty": a post that takes the lock
//     overtakes nobody, and no post is left stranded between the holder's last look and its unlock.
//
//   word:  0            free, queue empty
//          1            taken, queue empty
//          pointer      taken, top of a LIFO list of nodes (reversed when it is taken out: FIFO per thread)
//
//                     ┌──────┐   next   ┌──────┐   next
//          word ─────▶│ last │─────────▶│first │────────▶ null
//                     └──────┘          └──────┘
//
// Rejected: an exchange-then-link queue (a descheduled pusher hides every later entry), and a lock beside a queue
//     (the holder can look, unlock, and leave a post behind that was pushed in between).
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>

namespace canele::ltask {

class SubmitLock {
 public:
  struct Node {
    Node* next = nullptr;
  };

  /// Takes the lock (true), or links `node` for the holder (false).
  bool enter_or_push(Node& node) noexcept {
    std::uintptr_t seen = word_.load(std::memory_order_relaxed);
    for (;;) {
      if (seen == free_word) {
        if (word_.compare_exchange_weak(seen, taken_word, std::memory_order_acquire, std::memory_order_relaxed))
          return true;
      } else {
        node.next = seen == taken_word ? nullptr : reinterpret_cast<Node*>(seen);
        // release: the holder must see what the node says
        if (word_.compare_exchange_weak(seen, reinterpret_cast<std::uintptr_t>(&node), std::memory_order_release,
                                        std::memory_order_relaxed)) {
          return false;
        }
      }
    }
  }

  bool try_enter() noexcept {
    std::uintptr_t seen = free_word;
    return word_.load(std::memory_order_relaxed) == free_word &&
           word_.compare_exchange_strong(seen, taken_word, std::memory_order_acquire, std::memory_order_relaxed);
  }

  /// For the holder: gives the lock up and returns nullptr; or keeps it and returns what was linked, oldest first.
  Node* leave() noexcept { return try_leave() ? nullptr : take(); }

  /// For the holder: gives the lock up if nothing is linked.
  bool try_leave() noexcept {
    std::uintptr_t seen = taken_word;
    return word_.compare_exchange_strong(seen, free_word, std::memory_order_release, std::memory_order_relaxed);
  }

  /// For the holder: something is linked. A plain load.
  bool pending() const noexcept { return word_.load(std::memory_order_relaxed) > taken_word; }

  /// For the holder: takes out what is linked, oldest first; the lock stays taken.
  Node* take() noexcept {
    const std::uintptr_t seen = word_.exchange(taken_word, std::memory_order_acquire);
    assert(seen != free_word && "take() without the lock");
    Node* reversed = nullptr;
    for (Node* node = seen == taken_word ? nullptr : reinterpret_cast<Node*>(seen); node != nullptr;) {
      Node* next = node->next;
      node->next = reversed;
      reversed = node;
      node = next;
    }
    return reversed;
  }

  bool taken() const noexcept { return word_.load(std::memory_order_relaxed) != free_word; }

 private:
  static constexpr std::uintptr_t free_word = 0, taken_word = 1;
  alignas(64) std::atomic<std::uintptr_t> word_{free_word};
};

/// A try-lock that remembers that somebody was turned away: leave() then returns true, "look again".
/// Used to serialise the calls on one driver instance: whoever finds it taken leaves a mark, not a queue.
class Gate {
 public:
  /// True: taken by the caller. False: taken by another, who will look again before it leaves.
  bool enter() noexcept {
    std::uint32_t seen = state_.load(std::memory_order_relaxed);
    for (;;) {
      const std::uint32_t next = seen == 0 ? 1u : 2u;
      if (state_.compare_exchange_weak(seen, next, std::memory_order_acq_rel, std::memory_order_relaxed))
        return seen == 0;
    }
  }
  /// Takes it only if it is free; leaves no mark.
  bool try_enter() noexcept {
    std::uint32_t seen = 0;
    return state_.load(std::memory_order_relaxed) == 0 &&
           state_.compare_exchange_strong(seen, 1, std::memory_order_acquire, std::memory_order_relaxed);
  }
  /// True: somebody came in the meantime; the gate is still the caller's, who looks again.
  bool leave() noexcept {
    std::uint32_t seen = 1;
    if (state_.compare_exchange_strong(seen, 0, std::memory_order_release, std::memory_order_relaxed)) return false;
    state_.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    return true;
  }

 private:
  std::atomic<std::uint32_t> state_{0};
};

}  // namespace canele::ltask
