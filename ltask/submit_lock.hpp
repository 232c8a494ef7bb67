// SPDX-License-Identifier: BSD-3-Clause
//
// SubmitLock: a lock whose word is also the head of a queue of submissions that found it taken. A thread that takes the
// lock again and again does so without a locked instruction.
//
// Used by the engine. Any thread.
//
// No thread ever waits for this lock. A post either takes the lock and goes on inline, or is linked for the holder;
// unlocking fails while anything is linked. So "free" implies "queue empty". A post that takes the lock overtakes no
// other post. No post is left stranded between the holder's last check and its unlock.
//
//   word:  0            free, queue empty
//          1            taken, queue empty
//          2            biased: one thread, its owner, locks and unlocks it by a flag of its own
//          3            put down: as 1, but there is no holder
//          pointer      taken, top of a LIFO list of nodes (reversed when it is taken out: FIFO per thread)
//          pointer + 1  put down, and the same list
//
//                     ┌──────┐   next   ┌──────┐   next
//          word ─────▶│ last │─────────▶│first │────────▶ null
//                     └──────┘          └──────┘
//
// Other threads may link far more than one holder should run, or even put in order. A holder does a part of both.
//
//   word ─take─▶ unordered_ ─some at a time─▶ reversed_ ─all of them─▶ rest_ ─▶ run
//
// A holder that has served others for long enough puts the lock down with what is left, in the list and behind it. The
// next thread that posts links its post behind that, and becomes the holder. A thread that has nothing to post may
// inherit the lock, too. For all other threads the lock is taken. A thread that puts the lock down must make sure that
// one of these threads comes.
//
// The bias (as in biased locking, Kawachiya 2002, with an asymmetric fence for its handshake) works as follows. A
// thread that has unlocked often in a row leaves the word biased. From then on it locks by two plain steps, and unlocks
// by two:
//
//   lock:  inside = 1 · still biased? ─yes─▶ has it          unlock:  inside = 0 · still biased? ─yes─▶ is free
//                            └─no─┐                                                     └─no─┐
//   another:  word 2 → 1, bias = 0, heavy fence, inside? ─yes─▶ links its post               │
//                                                  └─no──▶ claim ◀── one of the two gets it ─┘
//
// After the heavy fence one of the two threads sees what the other has written, or both do. Then the claim decides
// which one holds the word, which is taken in the ordinary way from then on. Each revocation makes the bias harder to
// get the next time.
//
// Some words are protected by the lock, although other threads also change them without it, by atomic operations. The
// owner of the bias may change such words by plain steps. The other threads therefore begin a guard. Between begin
// and end of a guard no thread gets the bias, and a thread that has the bias loses it. (The owner itself takes the
// lock instead.)
//
// Rejected: an exchange-then-link queue (a descheduled pusher hides every later entry).
// Rejected: a lock beside a queue (the holder can check, unlock, and leave a post behind that was pushed in between).
// Rejected: a flag in the lock that all owners of the bias share. A former owner that was descheduled in between resets
// that flag under the next owner.
// Rejected: to revoke the bias by waiting until its owner is outside (the owner may have lost its core).
#pragma once

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "ltask/asymmetric.hpp"

namespace canele::ltask {

/// Fences: AsymmetricFences, or a test's replacement. most_reversed: nodes that one call of next_linked() puts in
/// order.
template <typename Fences, int most_reversed = 64>
class BasicSubmitLock {
 public:
  struct Node {
    Node* next = nullptr;
  };

  /// Sets how often in a row a thread must take the lock to become its owner; 0: never. The number doubles after each
  /// revocation, up to `at_most`. Called by the holder, or before there are other threads. Only where the fences are
  /// available.
  void bias_after(std::uint32_t times, std::uint32_t at_most = longest_row) noexcept {
    row_needed_ = times;
    most_needed_ = at_most;
  }

  enum class Entry : std::uint8_t {
    locked,    ///< the caller has the lock, and keeps the node.
    linked,    ///< the node is linked, for the holder.
    inherited  ///< the node is linked behind others, and the caller is the holder.
  };
  /// Takes the lock, or links `node`.
  Entry lock_or_push(Node& node) noexcept {
    if (try_lock_as_owner()) return Entry::locked;
    std::uintptr_t seen = word_.load(std::memory_order_relaxed);
    for (;;) {
      if (seen == free_word) {
        if (word_.compare_exchange_weak(seen, taken_word, std::memory_order_acquire, std::memory_order_relaxed)) {
          note_entry();
          return Entry::locked;
        }
      } else if (seen == biased_word) {
        if (revoke_bias()) return Entry::locked;
        seen = word_.load(std::memory_order_relaxed);
      } else if (is_put_down(seen)) {
        node.next = list_of(seen);
        // acquire: pairs with put_down(), to see what the last holder did
        if (word_.compare_exchange_weak(seen, reinterpret_cast<std::uintptr_t>(&node), std::memory_order_acq_rel,
                                        std::memory_order_relaxed)) {
          return Entry::inherited;
        }
      } else {
        node.next = seen == taken_word ? nullptr : reinterpret_cast<Node*>(seen);
        // release: the holder must see the contents of the node
        if (word_.compare_exchange_weak(seen, reinterpret_cast<std::uintptr_t>(&node), std::memory_order_release,
                                        std::memory_order_relaxed)) {
          return Entry::linked;
        }
      }
    }
  }

  /// Takes the lock if it was put down, with the work that is left in it. For a thread that has nothing to post, or may
  /// post later.
  bool try_inherit() noexcept {
    std::uintptr_t seen = word_.load(std::memory_order_relaxed);
    if (!is_put_down(seen)) return false;
    const std::uintptr_t next = seen == put_down_word ? taken_word : seen - put_down_bit;
    // acquire: pairs with put_down(), to see what the last holder did
    return word_.compare_exchange_strong(seen, next, std::memory_order_acq_rel, std::memory_order_relaxed);
  }

  /// Removes the oldest linked node and returns it. nullptr: there is none, or, if has_rest(), it takes more calls to
  /// find it. Called by the holder after a failed attempt to unlock.
  Node* next_linked() noexcept {
    if (rest_ == nullptr) reverse_some();
    Node* const node = rest_;
    if (node != nullptr) rest_ = node->next;
    return node;
  }
  /// Returns whether nodes are left that were taken out of the word. Then the holder may not unlock, but may put the
  /// lock down.
  bool has_rest() const noexcept { return rest_ != nullptr || unordered_ != nullptr; }
  /// Gives the lock up with what is linked. Called by the holder after a failed attempt to unlock.
  void put_down() noexcept {
    assert(locked_by_ == nullptr);
    last_ = nullptr;
    row_ = 0;
    std::uintptr_t seen = word_.load(std::memory_order_relaxed);
    // release: the thread that inherits the lock sees what this holder did. That thread may find that nothing is left.
    while (!word_.compare_exchange_weak(seen, seen == taken_word ? put_down_word : seen + put_down_bit,
                                        std::memory_order_release, std::memory_order_relaxed)) {
    }
  }
  /// Returns whether the lock was put down. A plain load.
  bool seems_put_down() const noexcept { return is_put_down(word_.load(std::memory_order_relaxed)); }

  /// Takes the lock if it is free. Inlined: the owner's few steps cost less than a call.
  [[gnu::always_inline]] bool try_lock() noexcept { return try_lock_as_owner() || try_lock_in_turn(); }
  [[gnu::noinline]] bool try_lock_in_turn() noexcept {
    std::uintptr_t seen = word_.load(std::memory_order_relaxed);
    if (seen == biased_word) [[unlikely]]
      return revoke_bias();
    return seen == free_word &&
           word_.compare_exchange_strong(seen, taken_word, std::memory_order_acquire, std::memory_order_relaxed) &&
           note_entry();
  }

  /// Takes the lock if the caller owns the bias.
  [[gnu::always_inline]] bool try_lock_as_owner() noexcept {
    Owner* const owner = bias_.load(std::memory_order_acquire);
    if (owner == nullptr || owner->thread != Fences::self()) return false;
    owner->inside.store(true, std::memory_order_relaxed);
    Fences::light();  // partner: the heavy fence in revoke_bias()
    return bias_.load(std::memory_order_acquire) == owner || lost_on_the_way_in(*owner);
  }

  /// For tests: unlocks and returns nullptr, or keeps the lock and returns all that was linked, oldest first.
  Node* unlock_or_take() noexcept {
    assert(!has_rest());
    if (try_unlock()) return nullptr;
    Node* reversed = nullptr;
    for (Node* node = take_unordered(); node != nullptr;) move(node, reversed);
    return reversed;
  }

  /// Unlocks if nothing is linked. For the holder.
  bool try_unlock() noexcept { return unlock_as_owner() || try_unlock_in_turn(); }
  /// Returns true if the holder had locked as owner and has now unlocked. Returns false if it still has the lock, and
  /// not as owner (any more).
  [[gnu::always_inline]] bool unlock_as_owner() noexcept {
    Owner* const owner = locked_by_;
    if (owner == nullptr) return false;
    // release: revoke_bias() acquires `inside`, and then sees what this holder did.
    owner->inside.store(false, std::memory_order_release);
    Fences::light();  // partner: the heavy fence in revoke_bias()
    return bias_.load(std::memory_order_acquire) == owner || !claim(*owner);
  }
  bool try_unlock_in_turn() noexcept {
    if (row_ >= row_needed_ && row_needed_ != 0) [[unlikely]]
      return unlock_biased();
    std::uintptr_t seen = taken_word;
    return word_.compare_exchange_strong(seen, free_word, std::memory_order_release, std::memory_order_relaxed);
  }

  /// Returns whether something is linked. For the holder; a plain load.
  bool pending() const noexcept { return word_.load(std::memory_order_relaxed) > biased_word; }

  /// Returns whether the holder has locked as owner. Then no other thread is past the begin of its guard.
  bool has_owner() const noexcept { return locked_by_ != nullptr; }
  /// Begins a guard. Returns true if there may be an owner. The caller must then lock and unlock before it changes
  /// anything.
  bool begin_guard() noexcept {
    guards_.fetch_add(1, std::memory_order_seq_cst);
    return may_be_biased_.load(std::memory_order_seq_cst);
  }
  void end_guard() noexcept { guards_.fetch_sub(1, std::memory_order_release); }

  /// Marks the lock as taken for ever, whatever it was. Called in the child of a fork, whose copy no thread may have
  /// again.
  void close() noexcept {
    bias_.store(nullptr, std::memory_order_relaxed);
    word_.store(taken_word, std::memory_order_relaxed);
  }

  /// For tests, when no thread uses the lock.
  bool taken() const noexcept { return word_.load(std::memory_order_relaxed) == taken_word || pending(); }
  bool biased() const noexcept { return word_.load(std::memory_order_relaxed) == biased_word; }

 private:
  static constexpr std::uintptr_t free_word = 0, taken_word = 1, biased_word = 2, put_down_word = 3, put_down_bit = 1;
  static constexpr std::size_t most_owners = 24;          ///< threads that may ever have a bias
  static constexpr std::uint32_t longest_row = 1u << 16;  ///< a row this long costs much more than a revocation

  /// Removes what is linked and returns it, newest first.
  Node* take_unordered() noexcept {
    const std::uintptr_t seen = word_.load(std::memory_order_relaxed);
    assert(seen != free_word && "taken out without the lock");
    if (seen <= biased_word) return nullptr;
    return reinterpret_cast<Node*>(word_.exchange(taken_word, std::memory_order_acquire));
  }
  /// Moves the first node of one list to the front of another one.
  static void move(Node*& from, Node*& to) noexcept {
    Node* const node = from;
    from = node->next;
    node->next = to;
    to = node;
  }
  /// Goes on to put in order what was taken out of the word. `rest_` gets it once all of it is.
  void reverse_some() noexcept {
    if (unordered_ == nullptr) unordered_ = take_unordered();
    for (int left = most_reversed; unordered_ != nullptr; --left) {
      if (left == 0) return;
      move(unordered_, reversed_);
    }
    rest_ = reversed_;
    reversed_ = nullptr;
  }

  static bool is_put_down(std::uintptr_t word) noexcept { return word > biased_word && (word & put_down_bit) != 0; }
  static Node* list_of(std::uintptr_t word) noexcept {
    return word == put_down_word ? nullptr : reinterpret_cast<Node*>(word - put_down_bit);
  }

  /// One bias. A thread that is descheduled during its handshake must not meet another bias there. So each bias belongs
  /// to one thread. It is used again only when the revoking thread has finished with it.
  struct Owner {
    const void* thread = nullptr;
    std::atomic<bool> inside{false}, claimed{false}, ended{false};
  };

  /// Handles a revocation that happens as the owner enters. Returns true if the caller has the lock all the same.
  [[gnu::cold, gnu::noinline]] bool lost_on_the_way_in(Owner& owner) noexcept {
    owner.inside.store(false, std::memory_order_release);
    return claim(owner);
  }
  /// Decides which thread gets the lock after a revocation, while the word is taken and no thread holds it. That is the
  /// owner, if it was inside or entering, or the revoking thread.
  [[gnu::cold, gnu::noinline]] bool claim(Owner& owner) noexcept {
    if (owner.claimed.exchange(true, std::memory_order_acq_rel)) return false;
    locked_by_ = nullptr;
    may_be_biased_.store(false, std::memory_order_release);
    row_needed_ = std::min(2 * row_needed_, most_needed_);
    row_ = 0;
    return true;
  }

  /// Revokes the bias. Returns true if the caller holds the lock.
  [[gnu::cold, gnu::noinline]] bool revoke_bias() noexcept {
    std::uintptr_t seen = biased_word;
    if (!word_.compare_exchange_strong(seen, taken_word, std::memory_order_acq_rel, std::memory_order_relaxed))
      return false;  // another thread does it
    Owner& owner = *bias_.exchange(nullptr, std::memory_order_acq_rel);
    Fences::heavy();  // partners: the light fences in try_lock_as_owner() and unlock_as_owner()
    const bool won = !owner.inside.load(std::memory_order_acquire) && claim(owner);
    owner.ended.store(true, std::memory_order_release);
    return won;
  }

  bool note_entry() noexcept {
    const void* const self = Fences::self();
    row_ = last_ == self ? row_ + 1 : 0;
    last_ = self;
    return true;
  }

  [[gnu::cold, gnu::noinline]] bool unlock_biased() noexcept {
    std::uintptr_t seen = taken_word;
    row_ = 0;
    Owner* const owner = bias_is_welcome() ? own_bias() : nullptr;
    if (owner == nullptr) {
      may_be_biased_.store(false, std::memory_order_release);
      return word_.compare_exchange_strong(seen, free_word, std::memory_order_release, std::memory_order_relaxed);
    }
    locked_by_ = owner;
    bias_.store(owner, std::memory_order_release);
    if (word_.compare_exchange_strong(seen, biased_word, std::memory_order_release, std::memory_order_relaxed))
      return true;
    bias_.store(nullptr, std::memory_order_relaxed);
    owner->ended.store(true, std::memory_order_relaxed);  // no thread has seen it: the word never said so
    locked_by_ = nullptr;
    may_be_biased_.store(false, std::memory_order_release);
    return false;
  }

  /// Announces the bias that the holder is about to give itself. Returns whether there is no guard; a later one will
  /// check the lock.
  bool bias_is_welcome() noexcept {
    // partner: begin_guard(), which writes guards_ and then reads may_be_biased_. One of the two sees the other.
    may_be_biased_.store(true, std::memory_order_seq_cst);
    return guards_.load(std::memory_order_seq_cst) == 0;
  }

  /// Returns the calling thread's bias, ready for use; nullptr: it may have none now. For the holder.
  Owner* own_bias() noexcept {
    const void* const self = Fences::self();
    const auto mine = [&](const Owner& one) { return one.thread == self; };
    Owner* const owner = std::find_if(owners_, owners_ + owner_count_, mine);
    if (owner == owners_ + most_owners) return nullptr;
    if (owner == owners_ + owner_count_) {
      ++owner_count_;
      owner->thread = self;
    } else if (!owner->ended.load(std::memory_order_acquire)) {
      return nullptr;
    }
    owner->ended.store(false, std::memory_order_relaxed);
    owner->claimed.store(false, std::memory_order_relaxed);
    return owner;
  }

  alignas(64) std::atomic<std::uintptr_t> word_{free_word};
  std::atomic<Owner*> bias_{nullptr};  ///< the thread that may lock as owner
  Owner* locked_by_ = nullptr;         ///< from here on for the holder only: the bias in force when it locked.
  Node* rest_ = nullptr;               ///< taken out of the word and not run yet, oldest first.
  Node *unordered_ = nullptr,
       *reversed_ = nullptr;    ///< taken out of the word, and being reversed from one to the other.
  const void* last_ = nullptr;  ///< thread of the last ordinary entry; `row_`: how often in a row.
  std::uint32_t row_ = 0, row_needed_ = 0, most_needed_ = longest_row;
  std::size_t owner_count_ = 0;             ///< biases that were ever used
  std::atomic<bool> may_be_biased_{false};  ///< true from before a bias is given until after it was revoked
  std::atomic<std::uint32_t> guards_{0};
  alignas(64) Owner owners_[most_owners];
};
using SubmitLock = BasicSubmitLock<AsymmetricFences>;

/// CombiningTryLock: a try-lock that remembers that another thread was turned away: the holder then checks again. It
/// serializes the calls on one driver instance. A thread that finds it taken leaves a mark, not a queue entry.
class CombiningTryLock {
 public:
  /// Returns true if the caller has taken the lock. Returns false if another thread has it, which will check again
  /// before it unlocks.
  bool try_lock_or_delegate() noexcept {
    std::uint32_t seen = state_.load(std::memory_order_relaxed);
    for (;;) {
      const std::uint32_t next = seen == 0 ? 1u : 2u;
      if (state_.compare_exchange_weak(seen, next, std::memory_order_acq_rel, std::memory_order_relaxed))
        return seen == 0;
    }
  }
  /// Takes the lock only if it is free; leaves no mark.
  bool try_lock() noexcept {
    std::uint32_t seen = 0;
    return state_.load(std::memory_order_relaxed) == 0 &&
           state_.compare_exchange_strong(seen, 1, std::memory_order_acquire, std::memory_order_relaxed);
  }
  /// Unlocks. Returns true if another thread came in the meantime: the caller still has the lock, and checks again.
  bool unlock_or_repeat() noexcept {
    std::uint32_t seen = 1;
    if (state_.compare_exchange_strong(seen, 0, std::memory_order_release, std::memory_order_relaxed)) return false;
    // An exchange, which acquires from each thread whose mark it takes back. So the holder's next check sees what that
    // thread wants. A plain store could be delayed beyond that check, and erase the mark of a thread that came after
    // it.
    state_.exchange(1, std::memory_order_acq_rel);
    return true;
  }

 private:
  std::atomic<std::uint32_t> state_{0};
};

}  // namespace canele::ltask
