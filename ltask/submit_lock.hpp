// SPDX-License-Identifier: BSD-3-Clause
//
// SubmitLock: a lock whose word is also the head of the queue of those who found it taken, and which a thread that
// takes it again and again takes without a locked instruction.
//
// Who: the engine.
// Threads: any.
// Surprise: nobody ever waits for this lock. A post either takes it and goes on inline, or is linked for the
//     holder; unlocking fails while anything is linked. So "free" implies "queue empty": a post that takes the lock
//     overtakes nobody, and no post is left stranded between the holder's last look and its unlock.
//
//   word:  0            free, queue empty
//          1            taken, queue empty
//          2            biased: one thread, its owner, takes and leaves it by a flag of its own
//          3            put down: as 1, but there is no holder
//          pointer      taken, top of a LIFO list of nodes (reversed when it is taken out: FIFO per thread)
//          pointer + 1  put down, and the same list
//
//                     ┌──────┐   next   ┌──────┐   next
//          word ─────▶│ last │─────────▶│first │────────▶ null
//                     └──────┘          └──────┘
//
// A holder that has served others for long enough puts the lock down with what is left, in the list and in `rest_`. The
// next thread that posts links its post behind that, and is the holder. Another one, which has nothing to post, may
// inherit the lock, too. To all others it is taken. Who puts it down sees to it that one of them comes.
//
// The bias (as in biased locking, Kawachiya 2002, with an asymmetric fence for its handshake): who has left often in a
// row leaves the word biased. From then on it enters by two plain steps, and leaves by two:
//
//   enter:  inside = 1 · still biased? ─yes─▶ has it          leave:  inside = 0 · still biased? ─yes─▶ has left it
//                             └─no─┐                                                    └─no─┐
//   another:  word 2 → 1, bias = 0, heavy fence, inside? ─yes─▶ links its post               │
//                                                  └─no──▶ claim ◀── one of the two gets it ─┘
//
// After the heavy fence one of the two sees what the other has written, or both do; then the claim decides who holds
// the word, which is taken in the ordinary way from then on. A bias that was taken away is harder to get the next time.
//
// What the lock protects, and others change without it by atomic operations, an owner may change by plain steps, for
// others visit: from a visit's begin to its end no thread is given the bias, and one that has it loses it. (Who is the
// owner enters instead.)
//
// Rejected: an exchange-then-link queue (a descheduled pusher hides every later entry), and a lock beside a queue
//     (the holder can look, unlock, and leave a post behind that was pushed in between). Of biases: a flag of the
//     lock's that all owners share (a former owner that was descheduled in between resets it under the next one), and
//     waiting for the owner to be outside (it may have lost its core).
#pragma once

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "ltask/asymmetric.hpp"

namespace canele::ltask {

/// Fences: AsymmetricFences, or what a test has in their place.
template <typename Fences>
class BasicSubmitLock {
 public:
  struct Node {
    Node* next = nullptr;
  };

  /// For the holder, or before there are other threads: a thread that has taken it so many times in a row may be its
  /// owner; 0: no thread. Twice as often after each bias that was taken away, up to `at_most`. Only where the fences
  /// are available.
  void bias_after(std::uint32_t times, std::uint32_t at_most = longest_row) noexcept {
    row_needed_ = times;
    most_needed_ = at_most;
  }

  enum class Entry : std::uint8_t {
    entered,   ///< the lock is the caller's, and the node is its own
    linked,    ///< the node is linked, for the holder
    inherited  ///< the node is linked, behind others, and the caller is the holder
  };
  /// Takes the lock, or links `node`.
  Entry enter_or_push(Node& node) noexcept {
    if (try_enter_as_owner()) return Entry::entered;
    std::uintptr_t seen = word_.load(std::memory_order_relaxed);
    for (;;) {
      if (seen == free_word) {
        if (word_.compare_exchange_weak(seen, taken_word, std::memory_order_acquire, std::memory_order_relaxed)) {
          note_entry();
          return Entry::entered;
        }
      } else if (seen == biased_word) {
        if (take_bias_away()) return Entry::entered;
        seen = word_.load(std::memory_order_relaxed);
      } else if (is_put_down(seen)) {
        node.next = list_of(seen);
        // acquire: with put_down(), what the last holder did
        if (word_.compare_exchange_weak(seen, reinterpret_cast<std::uintptr_t>(&node), std::memory_order_acq_rel,
                                        std::memory_order_relaxed)) {
          return Entry::inherited;
        }
      } else {
        node.next = seen == taken_word ? nullptr : reinterpret_cast<Node*>(seen);
        // release: the holder must see what the node says
        if (word_.compare_exchange_weak(seen, reinterpret_cast<std::uintptr_t>(&node), std::memory_order_release,
                                        std::memory_order_relaxed)) {
          return Entry::linked;
        }
      }
    }
  }

  /// Takes the lock if it was put down, with what is left in it. For who has nothing to post, or may post later.
  bool try_inherit() noexcept {
    std::uintptr_t seen = word_.load(std::memory_order_relaxed);
    if (!is_put_down(seen)) return false;
    const std::uintptr_t next = seen == put_down_word ? taken_word : seen - put_down_bit;
    // acquire: with put_down(), what the last holder did
    return word_.compare_exchange_strong(seen, next, std::memory_order_acq_rel, std::memory_order_relaxed);
  }

  /// For the holder that has tried to leave in vain: the oldest of what is linked. It is out of the list. nullptr:
  /// there is none.
  Node* next_linked() noexcept {
    if (rest_ == nullptr) rest_ = take();
    Node* const node = rest_;
    if (node != nullptr) rest_ = node->next;
    return node;
  }
  /// For the holder: something of it was taken out of the word and is left. Then it may not leave, but put it down.
  bool has_rest() const noexcept { return rest_ != nullptr; }
  /// For the holder that has tried to leave in vain: gives the lock up with what is linked.
  void put_down() noexcept {
    assert(entered_by_ == nullptr);
    last_ = nullptr;
    row_ = 0;
    std::uintptr_t seen = word_.load(std::memory_order_relaxed);
    // release: with who inherits it, what this holder did. It may find that nothing is left.
    while (!word_.compare_exchange_weak(seen, seen == taken_word ? put_down_word : seen + put_down_bit,
                                        std::memory_order_release, std::memory_order_relaxed)) {
    }
  }
  /// A plain load.
  bool seems_put_down() const noexcept { return is_put_down(word_.load(std::memory_order_relaxed)); }

  /// In line: an owner's few steps, which cost less than to call them.
  [[gnu::always_inline]] bool try_enter() noexcept { return try_enter_as_owner() || try_enter_in_turn(); }
  [[gnu::noinline]] bool try_enter_in_turn() noexcept {
    std::uintptr_t seen = word_.load(std::memory_order_relaxed);
    if (seen == biased_word) [[unlikely]]
      return take_bias_away();
    return seen == free_word &&
           word_.compare_exchange_strong(seen, taken_word, std::memory_order_acquire, std::memory_order_relaxed) &&
           note_entry();
  }

  /// Takes it if the bias is the caller's.
  [[gnu::always_inline]] bool try_enter_as_owner() noexcept {
    Owner* const owner = bias_.load(std::memory_order_acquire);
    if (owner == nullptr || owner->thread != Fences::self()) return false;
    owner->inside.store(true, std::memory_order_relaxed);
    Fences::light();
    return bias_.load(std::memory_order_acquire) == owner || lost_on_the_way_in(*owner);
  }

  /// For the holder: gives the lock up and returns nullptr; or keeps it and returns what was linked, oldest first.
  Node* leave() noexcept { return try_leave() ? nullptr : take(); }

  /// For the holder: gives the lock up if nothing is linked.
  bool try_leave() noexcept { return leave_as_owner() || try_leave_in_turn(); }
  /// True: it had entered as owner, and has left. False: it has it still, and it is not, or no longer, the owner's.
  [[gnu::always_inline]] bool leave_as_owner() noexcept {
    Owner* const owner = entered_by_;
    if (owner == nullptr) return false;
    owner->inside.store(false, std::memory_order_release);
    Fences::light();
    return bias_.load(std::memory_order_acquire) == owner || !claim(*owner);
  }
  bool try_leave_in_turn() noexcept {
    if (row_ >= row_needed_ && row_needed_ != 0) [[unlikely]]
      return leave_biased();
    std::uintptr_t seen = taken_word;
    return word_.compare_exchange_strong(seen, free_word, std::memory_order_release, std::memory_order_relaxed);
  }

  /// For the holder: something is linked. A plain load.
  bool pending() const noexcept { return word_.load(std::memory_order_relaxed) > biased_word; }

  /// For the holder: takes out what is linked, oldest first; the lock stays taken.
  Node* take() noexcept {
    const std::uintptr_t seen = word_.load(std::memory_order_relaxed);
    assert(seen != free_word && "take() without the lock");
    if (seen <= biased_word) return nullptr;
    Node* reversed = nullptr;
    for (auto* node = reinterpret_cast<Node*>(word_.exchange(taken_word, std::memory_order_acquire));
         node != nullptr;) {
      Node* next = node->next;
      node->next = reversed;
      reversed = node;
      node = next;
    }
    return reversed;
  }

  /// For the holder: it has entered as owner, so nobody who visits is past the begin of the visit.
  bool has_owner() const noexcept { return entered_by_ != nullptr; }
  /// True: there may be an owner. Then the visitor takes the lock, and leaves it, before it changes anything.
  bool begin_visit() noexcept {
    visitors_.fetch_add(1, std::memory_order_seq_cst);
    return may_be_biased_.load(std::memory_order_seq_cst);
  }
  void end_visit() noexcept { visitors_.fetch_sub(1, std::memory_order_release); }

  /// In the child of a fork, whose copy of the lock nobody may have again: taken for ever, whatever it was.
  void close() noexcept {
    bias_.store(nullptr, std::memory_order_relaxed);
    word_.store(taken_word, std::memory_order_relaxed);
  }

  /// For tests, when no thread uses it.
  bool taken() const noexcept { return word_.load(std::memory_order_relaxed) == taken_word || pending(); }
  bool biased() const noexcept { return word_.load(std::memory_order_relaxed) == biased_word; }

 private:
  static constexpr std::uintptr_t free_word = 0, taken_word = 1, biased_word = 2, put_down_word = 3, put_down_bit = 1;
  static constexpr std::size_t most_owners = 24;          ///< threads that may ever have a bias
  static constexpr std::uint32_t longest_row = 1u << 16;  ///< much more than it costs to take a bias away

  static bool is_put_down(std::uintptr_t word) noexcept { return word > biased_word && (word & put_down_bit) != 0; }
  static Node* list_of(std::uintptr_t word) noexcept {
    return word == put_down_word ? nullptr : reinterpret_cast<Node*>(word - put_down_bit);
  }

  /// One bias. Who was descheduled in the middle of its handshake must meet no other: so it is for one thread, and used
  /// again only when who took it away has done with it.
  struct Owner {
    const void* thread = nullptr;
    std::atomic<bool> inside{false}, claimed{false}, over{false};
  };

  /// Somebody takes the bias away. True: the caller has the lock all the same.
  [[gnu::cold, gnu::noinline]] bool lost_on_the_way_in(Owner& owner) noexcept {
    owner.inside.store(false, std::memory_order_release);
    return claim(owner);
  }
  /// The word is taken, and nobody holds it: the owner shall, if it was inside or on its way, or who took the bias
  /// away.
  [[gnu::cold, gnu::noinline]] bool claim(Owner& owner) noexcept {
    if (owner.claimed.exchange(true, std::memory_order_acq_rel)) return false;
    entered_by_ = nullptr;
    may_be_biased_.store(false, std::memory_order_release);
    row_needed_ = std::min(2 * row_needed_, most_needed_);
    row_ = 0;
    return true;
  }

  /// True: the caller holds the lock.
  [[gnu::cold, gnu::noinline]] bool take_bias_away() noexcept {
    std::uintptr_t seen = biased_word;
    if (!word_.compare_exchange_strong(seen, taken_word, std::memory_order_acq_rel, std::memory_order_relaxed))
      return false;  // somebody else does
    Owner& owner = *bias_.exchange(nullptr, std::memory_order_acq_rel);
    Fences::heavy();
    const bool won = !owner.inside.load(std::memory_order_acquire) && claim(owner);
    owner.over.store(true, std::memory_order_release);
    return won;
  }

  bool note_entry() noexcept {
    const void* const self = Fences::self();
    row_ = last_ == self ? row_ + 1 : 0;
    last_ = self;
    return true;
  }

  [[gnu::cold, gnu::noinline]] bool leave_biased() noexcept {
    std::uintptr_t seen = taken_word;
    row_ = 0;
    Owner* const owner = bias_is_welcome() ? own_bias() : nullptr;
    if (owner == nullptr) {
      may_be_biased_.store(false, std::memory_order_release);
      return word_.compare_exchange_strong(seen, free_word, std::memory_order_release, std::memory_order_relaxed);
    }
    entered_by_ = owner;
    bias_.store(owner, std::memory_order_release);
    if (word_.compare_exchange_strong(seen, biased_word, std::memory_order_release, std::memory_order_relaxed))
      return true;
    bias_.store(nullptr, std::memory_order_relaxed);
    owner->over.store(true, std::memory_order_relaxed);  // nobody has seen it: the word never said so
    entered_by_ = nullptr;
    may_be_biased_.store(false, std::memory_order_release);
    return false;
  }

  /// For the holder, who is about to give itself the bias: nobody visits, or will without a look at the lock.
  bool bias_is_welcome() noexcept {
    may_be_biased_.store(true, std::memory_order_seq_cst);
    return visitors_.load(std::memory_order_seq_cst) == 0;
  }

  /// For the holder: the calling thread's, ready for use; nullptr: it may have none now.
  Owner* own_bias() noexcept {
    const void* const self = Fences::self();
    const auto mine = [&](const Owner& one) { return one.thread == self; };
    Owner* const owner = std::find_if(owners_, owners_ + owner_count_, mine);
    if (owner == owners_ + most_owners) return nullptr;
    if (owner == owners_ + owner_count_) {
      ++owner_count_;
      owner->thread = self;
    } else if (!owner->over.load(std::memory_order_acquire)) {
      return nullptr;
    }
    owner->over.store(false, std::memory_order_relaxed);
    owner->claimed.store(false, std::memory_order_relaxed);
    return owner;
  }

  alignas(64) std::atomic<std::uintptr_t> word_{free_word};
  std::atomic<Owner*> bias_{nullptr};  ///< who may enter as owner
  Owner* entered_by_ = nullptr;        ///< from here on the holder's: the bias in force when it entered
  Node* rest_ = nullptr;               ///< taken out of the word and not run yet, oldest first
  const void* last_ = nullptr;         ///< who entered in the ordinary way last, and how often in a row
  std::uint32_t row_ = 0, row_needed_ = 0, most_needed_ = longest_row;
  std::size_t owner_count_ = 0;             ///< so far
  std::atomic<bool> may_be_biased_{false};  ///< true from before a bias is given until it has been taken away
  std::atomic<std::uint32_t> visitors_{0};
  alignas(64) Owner owners_[most_owners];
};
using SubmitLock = BasicSubmitLock<AsymmetricFences>;

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
    // One step, which acquires from each enter() whose mark it takes back: the holder's next look sees what that thread
    // wants. A plain store could be delayed beyond that look, and erase the mark of a thread that came after it.
    state_.exchange(1, std::memory_order_acq_rel);
    return true;
  }

 private:
  std::atomic<std::uint32_t> state_{0};
};

}  // namespace canele::ltask
