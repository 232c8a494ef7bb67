// SPDX-License-Identifier: BSD-3-Clause
//
// KeyedQueues: a growing hash table from (session, tag, source) to a FIFO of match nodes. Every operation is
// constant-time, also while it grows.
//
// Who: the matcher, under the engine's lock.
// Threads: under the engine's lock.
// Surprise: it allocates only to grow; queues and collision chains run through the nodes.
//
//   buckets (64 B, one cache line each)              nodes (in requests or messages)
//   ┌───────────────────────────────┬──────────┐       full slots in front, overflow only if all are full
//   │ 7 × (16 bits of hash, pointer)│ overflow │──▶ head ─chain▶ head ─▶ null       (rare)
//   └──────┬────────────────────────┴──────────┘
//          └──▶ head ⇄ next ⇄ … ⇄ tail         FIFO of one key; head.tail ──▶ last
//
// Growth doubles the array and moves two old buckets per insertion; until all are moved a bucket is looked up
//     where it lives:
//
//   old: [moved moved moved | not yet …]     new: [ …… twice as long …… ]
//
// Rejected: open addressing with stored keys (24 B an entry: 2.6 entries a line, and deletion leaves tombstones);
//     one fixed array of chains (degrades beyond it); rehashing at once (a pause of milliseconds at a million
//     entries).
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>

#include "comm/matching/node.hpp"

namespace canele::comm {

struct MatchKey {
  std::uint64_t tag;
  std::uint32_t session;
  std::int32_t source;
  bool operator==(const MatchKey&) const = default;
};

/// One cache line of the table.
struct alignas(64) MatchBucket {
  static constexpr int slot_count = 7;
  std::uint64_t slots[slot_count];  // 16 bits of hash, 48 bits of pointer; 0 = empty
  MatchNode* overflow;

  static std::uint64_t entry(std::uint64_t hash, MatchNode* node) noexcept {
    return (hash & (std::uint64_t{0xffff} << 48)) | reinterpret_cast<std::uintptr_t>(node);
  }
  static MatchNode* node_of(std::uint64_t e) noexcept {
    return reinterpret_cast<MatchNode*>(e & ~(std::uint64_t{0xffff} << 48));
  }
  static bool same_hash(std::uint64_t e, std::uint64_t hash) noexcept { return ((e ^ hash) >> 48) == 0; }

  /// Fresh zero pages: an array of any size costs nothing until it is touched. Throws std::bad_alloc.
  static MatchBucket* allocate(std::size_t buckets);
  static void release(MatchBucket* table, std::size_t buckets) noexcept;
};
static_assert(sizeof(MatchBucket) == 64);

/// `Filing` tells how nodes are filed: static links(MatchNode&), which of a node's links this table uses, and static
/// key(const MatchNode&), under which key.
template <typename Filing>
class KeyedQueues {
 public:
  explicit KeyedQueues(std::uint64_t seed)
      : seed_(seed | 1), table_(MatchBucket::allocate(first_buckets)), mask_(first_buckets - 1) {}
  ~KeyedQueues() {
    MatchBucket::release(table_, mask_ + 1);
    if (old_ != nullptr) MatchBucket::release(old_, old_mask_ + 1);
  }
  KeyedQueues(const KeyedQueues&) = delete;
  KeyedQueues& operator=(const KeyedQueues&) = delete;

  /// Where find() found the head of a queue; valid until the table changes.
  struct Place {
    std::uint64_t hash = 0;
    MatchBucket* bucket = nullptr;
    std::uint64_t* slot = nullptr;
    MatchNode** chain = nullptr;
  };

  /// First node under the key, or nullptr.
  MatchNode* find(const MatchKey& key) const noexcept {
    Place place;
    return find(key, place);
  }
  MatchNode* find(const MatchKey& key, Place& place) const noexcept;
  /// Appends to the FIFO of the node's key.
  void push(MatchNode& node);
  /// Takes the first node of its FIFO out, which find() has just found at `place`.
  void remove_first(MatchNode& node, const Place& place) noexcept;
  /// Takes the node out, wherever in its FIFO it is.
  void remove(MatchNode& node) noexcept;
  MatchNode* next(MatchNode& node) const noexcept { return links(node).next; }

  std::size_t keys() const noexcept { return keys_; }
  std::size_t bytes() const noexcept { return (mask_ + 1 + (old_ ? old_mask_ + 1 : 0)) * sizeof(MatchBucket); }
  /// Calls visit(node) for every node; the table must not change meanwhile.
  template <typename Visit>
  void each(Visit visit) const;

 private:
  __extension__ using Wide = unsigned __int128;
  static constexpr std::size_t first_buckets = 16, keys_per_bucket = 4, moves_per_push = 2;

  static MatchLinks& links(MatchNode& node) noexcept { return Filing::links(node); }

  /// One wide multiplication, its halves folded (as in wyhash); seeded because peers choose the tags. The second factor
  /// is odd, so that no key wipes out the low bits of the first.
  std::uint64_t hash(const MatchKey& key) const noexcept {
    const std::uint64_t who = std::uint64_t{key.session} << 32 | static_cast<std::uint32_t>(key.source);
    const Wide product = static_cast<Wide>(key.tag ^ seed_) * ((who << 1 | 1) ^ (seed_ * 0x9e3779b97f4a7c16u));
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
  MatchBucket& bucket(std::uint64_t h) const noexcept {
    if (old_ != nullptr) [[unlikely]] {
      const std::size_t i = h & old_mask_;
      if (i >= moved_) return old_[i];
    }
    return table_[h & mask_];
  }
  void append(MatchNode& head, MatchNode& node) noexcept;
  /// Keeps the full slots of a bucket in front.
  void close_gap(MatchBucket& b, std::uint64_t* hole) noexcept;
  /// Into the first free slot of its bucket, else in front of the overflow.
  static void insert_head(MatchBucket& b, MatchNode& head, std::uint64_t hash) noexcept;
  void grow();
  void move_some() noexcept;

  std::uint64_t seed_;
  MatchBucket* table_;
  std::size_t mask_;
  std::size_t keys_ = 0;
  MatchBucket* old_ = nullptr;  // while growing
  std::size_t old_mask_ = 0, moved_ = 0;
};

template <typename Filing>
[[gnu::always_inline]] inline MatchNode* KeyedQueues<Filing>::find(const MatchKey& key, Place& place) const noexcept {
  place.hash = hash(key);
  MatchBucket& b = bucket(place.hash);
  place.bucket = &b;
  for (std::uint64_t& e : b.slots) {
    if (e == 0) return nullptr;  // the slots are filled from the front, and the overflow after them
    if (!MatchBucket::same_hash(e, place.hash)) continue;
    MatchNode* node = MatchBucket::node_of(e);
    if (Filing::key(*node) == key) {
      place.slot = &e;
      return node;
    }
  }
  for (MatchNode** link = &b.overflow; *link != nullptr; link = &links(**link).chain) {
    if (Filing::key(**link) == key) {
      place.chain = link;
      return *link;
    }
  }
  return nullptr;
}

template <typename Filing>
void KeyedQueues<Filing>::append(MatchNode& head, MatchNode& node) noexcept {
  MatchLinks& first = links(head);
  links(node).prev = first.tail;
  links(*first.tail).next = &node;
  first.tail = &node;
}

template <typename Filing>
void KeyedQueues<Filing>::push(MatchNode& node) {
  if (old_ != nullptr) [[unlikely]] {
    move_some();
  } else if (keys_ >= keys_per_bucket * (mask_ + 1)) [[unlikely]] {
    grow();
  }
  links(node) = MatchLinks{};
  Place place;
  if (MatchNode* head = find(Filing::key(node), place); head != nullptr) {
    append(*head, node);
    return;
  }
  links(node).tail = &node;
  ++keys_;
  insert_head(*place.bucket, node, place.hash);
}

template <typename Filing>
[[gnu::always_inline]] inline void KeyedQueues<Filing>::insert_head(MatchBucket& b, MatchNode& head,
                                                                    std::uint64_t h) noexcept {
  for (std::uint64_t& e : b.slots) {
    if (e != 0) continue;
    e = MatchBucket::entry(h, &head);
    return;
  }
  links(head).chain = b.overflow;
  b.overflow = &head;
}

template <typename Filing>
void KeyedQueues<Filing>::close_gap(MatchBucket& b, std::uint64_t* hole) noexcept {
  if (b.overflow != nullptr) [[unlikely]] {  // all slots are full: one from the chain takes the place
    MatchNode* head = b.overflow;
    b.overflow = links(*head).chain;
    links(*head).chain = nullptr;
    *hole = MatchBucket::entry(hash(Filing::key(*head)), head);
    return;
  }
  std::uint64_t* last = hole;
  while (last + 1 != b.slots + MatchBucket::slot_count && last[1] != 0) ++last;
  *hole = *last;
  *last = 0;
}

template <typename Filing>
[[gnu::always_inline]] inline void KeyedQueues<Filing>::remove_first(MatchNode& node, const Place& place) noexcept {
  MatchLinks& own = links(node);
  MatchNode* follower = own.next;
  if (follower != nullptr) {
    MatchLinks& fl = links(*follower);
    fl.prev = nullptr;
    fl.tail = own.tail;
    fl.chain = own.chain;
  } else {
    --keys_;
  }
  if (place.slot == nullptr) [[unlikely]] {
    *place.chain = follower != nullptr ? follower : own.chain;
  } else if (follower != nullptr) {
    *place.slot = MatchBucket::entry(place.hash, follower);
  } else {
    close_gap(*place.bucket, place.slot);
  }
  own = MatchLinks{};
}

template <typename Filing>
void KeyedQueues<Filing>::remove(MatchNode& node) noexcept {
  MatchLinks& own = links(node);
  if (own.prev != nullptr && own.next != nullptr) {  // in the middle: the table need not know
    links(*own.prev).next = own.next;
    links(*own.next).prev = own.prev;
    own = MatchLinks{};
    return;
  }
  Place place;
  MatchNode* head = find(Filing::key(node), place);
  assert(head != nullptr && "removing a node that is not in the table");
  if (head == &node) {
    remove_first(node, place);
    return;
  }
  links(*own.prev).next = nullptr;  // the tail
  links(*head).tail = own.prev;
  own = MatchLinks{};
}

template <typename Filing>
void KeyedQueues<Filing>::grow() {
  MatchBucket* larger = MatchBucket::allocate(2 * (mask_ + 1));
  old_ = table_;
  old_mask_ = mask_;
  moved_ = 0;
  table_ = larger;
  mask_ = 2 * mask_ + 1;
  move_some();
}

template <typename Filing>
void KeyedQueues<Filing>::move_some() noexcept {
  for (std::size_t n = 0; n < moves_per_push && old_ != nullptr; ++n) {
    MatchBucket from = old_[moved_++];  // from now on bucket() leads to the new array
    const auto insert = [this](MatchNode& head) {
      const std::uint64_t h = hash(Filing::key(head));
      insert_head(bucket(h), head, h);
    };
    for (const std::uint64_t e : from.slots) {
      if (e != 0) insert(*MatchBucket::node_of(e));
    }
    for (MatchNode* head = from.overflow; head != nullptr;) {
      MatchNode* following = links(*head).chain;
      links(*head).chain = nullptr;
      insert(*head);
      head = following;
    }
    if (moved_ > old_mask_) {
      MatchBucket::release(old_, old_mask_ + 1);
      old_ = nullptr;
    }
  }
}

template <typename Filing>
template <typename Visit>
void KeyedQueues<Filing>::each(Visit visit) const {
  const auto queue = [&](MatchNode* head) {
    for (MatchNode* node = head; node != nullptr; node = links(*node).next) visit(*node);
  };
  const auto walk = [&](const MatchBucket& b) {
    for (const std::uint64_t e : b.slots) {
      if (e != 0) queue(MatchBucket::node_of(e));
    }
    for (MatchNode* head = b.overflow; head != nullptr; head = links(*head).chain) queue(head);
  };
  for (std::size_t i = 0; i <= mask_; ++i) walk(table_[i]);
  if (old_ != nullptr) {
    for (std::size_t i = moved_; i <= old_mask_; ++i) walk(old_[i]);
  }
}

}  // namespace canele::comm
