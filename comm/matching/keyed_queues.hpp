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

class KeyedQueues {
 public:
  using LinksOf = MatchLinks& (*)(MatchNode&);
  using KeyOf = MatchKey (*)(const MatchNode&);

  /// `links` tells which links of a node this table uses, `key` under which key it files it.
  KeyedQueues(std::uint64_t seed, LinksOf links, KeyOf key);
  ~KeyedQueues();
  KeyedQueues(const KeyedQueues&) = delete;
  KeyedQueues& operator=(const KeyedQueues&) = delete;

  /// Where find() found the head of a queue; valid until the table changes.
  struct Place {
    std::uint64_t hash = 0;
    std::uint64_t* slot = nullptr;
    MatchNode** chain = nullptr;
  };

  /// First node under the key, or nullptr.
  MatchNode* find(const MatchKey& key) const noexcept {
    Place place;
    return find(key, place);
  }
  MatchNode* find(const MatchKey& key, Place& place) const noexcept {
    place.hash = hash(key);
    return lookup(key, place);
  }
  /// Appends to the FIFO of the node's key.
  void push(MatchNode& node);
  /// Takes the first node of its FIFO out, which find() has just found at `place`.
  void remove_first(MatchNode& node, const Place& place) noexcept;
  /// Takes the node out, wherever in its FIFO it is.
  void remove(MatchNode& node) noexcept;
  MatchNode* next(MatchNode& node) const noexcept { return links_(node).next; }

  std::size_t keys() const noexcept { return keys_; }
  std::size_t bytes() const noexcept { return (mask_ + 1 + (old_ ? old_mask_ + 1 : 0)) * sizeof(Bucket); }
  /// Calls visit(node) for every node; the table must not change meanwhile.
  template <typename Visit>
  void each(Visit visit) const;

 private:
  static constexpr int slots_per_bucket = 7;
  struct alignas(64) Bucket {
    std::uint64_t slots[slots_per_bucket];  // 16 bits of hash, 48 bits of pointer; 0 = empty
    MatchNode* overflow;
  };
  static_assert(sizeof(Bucket) == 64);
  static constexpr std::size_t first_buckets = 16, keys_per_bucket = 4, moves_per_push = 2;

  static std::uint64_t entry(std::uint64_t hash, MatchNode* node) noexcept {
    return (hash & (std::uint64_t{0xffff} << 48)) | reinterpret_cast<std::uintptr_t>(node);
  }
  static MatchNode* node_of(std::uint64_t e) noexcept {
    return reinterpret_cast<MatchNode*>(e & ~(std::uint64_t{0xffff} << 48));
  }
  std::uint64_t hash(const MatchKey& key) const noexcept {
    // multiply-xorshift over both words; seeded because peers choose the tags
    std::uint64_t h = (key.tag ^ seed_) * 0x9e3779b97f4a7c15u;
    h ^= h >> 32;
    h += (std::uint64_t{key.session} << 32) | static_cast<std::uint32_t>(key.source);
    h *= 0xd6e8feb86659fd93u;
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    return h ^ (h >> 29);
  }
  Bucket& bucket(std::uint64_t h) const noexcept {
    if (old_ != nullptr) [[unlikely]] {
      const std::size_t i = h & old_mask_;
      if (i >= moved_) return old_[i];
    }
    return table_[h & mask_];
  }
  /// The head with this key, whose hash is in `place`; also notes where the pointer to it is kept.
  MatchNode* lookup(const MatchKey& key, Place& place) const noexcept;
  /// Keeps the full slots of a bucket in front.
  void close_gap(Bucket& b, std::uint64_t& hole) noexcept;
  void insert_head(MatchNode& head, std::uint64_t hash) noexcept;
  void grow();
  void move_some() noexcept;
  static Bucket* allocate(std::size_t buckets);
  static void release(Bucket* table, std::size_t buckets) noexcept;

  LinksOf links_;
  KeyOf key_;
  std::uint64_t seed_;
  Bucket* table_;
  std::size_t mask_;
  std::size_t keys_ = 0;
  Bucket* old_ = nullptr;  // while growing
  std::size_t old_mask_ = 0, moved_ = 0;
};

template <typename Visit>
void KeyedQueues::each(Visit visit) const {
  const auto queue = [&](MatchNode* head) {
    for (MatchNode* node = head; node != nullptr; node = links_(*node).next) visit(*node);
  };
  const auto walk = [&](const Bucket& b) {
    for (const std::uint64_t e : b.slots) {
      if (e != 0) queue(node_of(e));
    }
    for (MatchNode* head = b.overflow; head != nullptr; head = links_(*head).chain) queue(head);
  };
  for (std::size_t i = 0; i <= mask_; ++i) walk(table_[i]);
  if (old_ != nullptr) {
    for (std::size_t i = moved_; i <= old_mask_; ++i) walk(old_[i]);
  }
}

}  // namespace canele::comm
