// SPDX-License-Identifier: BSD-3-Clause
//
// KeyedQueues: a growing hash table from (session, tag, source) to a FIFO of match nodes. Every operation is
// constant-time, also while it grows.
//
// Who: the matcher, under the engine's lock.
// Threads: under the engine's lock.
// Surprise: it allocates only to grow; queues and collision chains run through the nodes.
//
//   buckets (64 B, one cache line each)                         nodes (in requests or messages)
//   ┌─────────────────────┬───────┬───────────────┬──────────┐      full slots in front, overflow only if all are full
//   │ 7 × 16 bits of hash │ count │ 7 × pointer   │ overflow │──▶ head ─chain▶ head ─▶ null       (rare)
//   └─────────────────────┴───────┴───────┬───────┴──────────┘      pointers have 48 bits
//                                         └──▶ head ⇄ next ⇄ … ⇄ tail    FIFO of one key; head.prev ──▶ tail
//
// All seven hashes of a bucket are compared at once, so that a full bucket costs no more instructions than an empty
// one. Growth doubles the array and moves one old bucket per insertion; until all are moved a bucket is looked up
//     where it lives:
//
//   old: [moved moved moved | not yet …]     new: [ …… twice as long …… ]
//
// Rejected: open addressing with stored keys (24 B an entry: 2.6 entries a line, and deletion leaves tombstones);
//     one fixed array of chains (degrades beyond it); rehashing at once (a pause of milliseconds at a million
//     entries).
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "comm/matching/node.hpp"
#include "comm/matching/prefetch.hpp"
#include "comm/matching/statistics.hpp"

namespace canele::comm {

struct MatchKey {
  std::uint64_t tag, who;  // who: session and source, as they lie in a node

  MatchKey(std::uint64_t t, std::uint32_t session, std::int32_t source) noexcept
      : tag(t), who(session | std::uint64_t{static_cast<std::uint32_t>(source)} << 32) {}
  /// The key of a node as it is, in two loads.
  explicit MatchKey(const MatchNode& node) noexcept : tag(node.tag) {
    static_assert(offsetof(MatchNode, source) == offsetof(MatchNode, session) + sizeof node.session);
    std::memcpy(&who, &node.session, sizeof who);
  }
  bool operator==(const MatchKey& other) const noexcept {  // one branch
    return ((tag ^ other.tag) | (who ^ other.who)) == 0;
  }
};

/// One cache line of the table.
struct alignas(64) MatchBucket {
  static constexpr unsigned slot_count = 7;
  std::uint16_t marks[slot_count];  // bits of the hash, never 0; 0 = free
  std::uint16_t count;              // of the full slots, which are in front
  unsigned char pointers[8 * 6];    // of the slots' heads, 48 bits each, then the overflow's

  static std::uint16_t mark(std::uint64_t hash) noexcept { return static_cast<std::uint16_t>(hash >> 48 | 1); }
  /// The slots with that mark: two equal bits for each.
  unsigned having(std::uint16_t wanted) const noexcept {
#ifdef __SSE2__
    const __m128i all = _mm_load_si128(reinterpret_cast<const __m128i*>(marks));
    const __m128i same = _mm_cmpeq_epi16(all, _mm_set1_epi16(static_cast<short>(wanted)));
    return static_cast<unsigned>(_mm_movemask_epi8(same)) & 0x3fff;
#else
    unsigned found = 0;
    for (unsigned i = 0; i < slot_count; ++i) found |= marks[i] == wanted ? 3u << 2 * i : 0u;
    return found;
#endif
  }
  MatchNode* head(unsigned slot) const noexcept {
    std::uint64_t bits;
    std::memcpy(&bits, pointers + std::size_t{6} * slot, sizeof bits);
    return reinterpret_cast<MatchNode*>(bits & ~(std::uint64_t{0xffff} << 48));
  }
  void set_head(unsigned slot, const MatchNode* node) noexcept { store(pointers + std::size_t{6} * slot, node); }
  MatchNode* overflow() const noexcept {
    std::uint64_t bits;
    std::memcpy(&bits, pointers + sizeof pointers - sizeof bits, sizeof bits);
    return reinterpret_cast<MatchNode*>(bits >> 16);
  }
  void set_overflow(const MatchNode* node) noexcept { store(pointers + std::size_t{6} * slot_count, node); }

  /// Fresh zero pages: an array of any size costs nothing until it is touched. Throws std::bad_alloc.
  static MatchBucket* allocate(std::size_t buckets);
  static void release(MatchBucket* table, std::size_t buckets) noexcept;

 private:
  static_assert(std::endian::native == std::endian::little && sizeof(void*) == 8);
  static void store(unsigned char* where, const MatchNode* node) noexcept {
    const auto bits = reinterpret_cast<std::uintptr_t>(node);
    const auto low = static_cast<std::uint32_t>(bits);
    const auto high = static_cast<std::uint16_t>(bits >> 32);
    std::memcpy(where, &low, sizeof low);
    std::memcpy(where + sizeof low, &high, sizeof high);
  }
};
static_assert(sizeof(MatchBucket) == 64);

/// `Filing` tells how nodes are filed: static links(MatchNode&), which of a node's links this table uses, and static
/// key(const MatchNode&), under which key. `Counting`: see statistics.hpp.
template <typename Filing, typename Counting = matching::NotCounted>
class KeyedQueues {
 public:
  explicit KeyedQueues(std::uint64_t seed)
      : seed_(seed | 1),
        factor_(seed_ * 0x9e3779b97f4a7c16u),
        table_(MatchBucket::allocate(first_buckets)),
        mask_(first_buckets - 1) {}
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
    unsigned slot = 0;            ///< slot_count: in the overflow
    MatchNode* before = nullptr;  ///< in the overflow: whose chain leads to it; nullptr: the bucket does
  };

  /// First node under the key, or nullptr.
  MatchNode* find(const MatchKey& key) const noexcept {
    Place place;
    return find(key, place);
  }
  MatchNode* find(const MatchKey& key, Place& place) const noexcept;
  /// Sends for the bucket of the key; and, when it is there, the head that has its mark, not looked at.
  void foresee(const MatchKey& key) const noexcept { prefetch_to_write(&bucket(hash(key))); }
  const MatchNode* guess(const MatchKey& key) const noexcept {
    const std::uint64_t h = hash(key);
    const MatchBucket& b = bucket(h);
    const unsigned same = b.having(MatchBucket::mark(h));
    return same != 0 ? b.head(static_cast<unsigned>(std::countr_zero(same)) / 2) : nullptr;
  }
  /// Appends to the FIFO of the node's key.
  void push(MatchNode& node);
  /// Takes the first node of its FIFO out, which find() has just found at `place`.
  void remove_first(MatchNode& node, const Place& place) noexcept;
  /// Takes the node out, wherever in its FIFO it is.
  void remove(MatchNode& node) noexcept;
  MatchNode* next(MatchNode& node) const noexcept { return links(node).next; }

  const matching::Tally& tally() const noexcept { return tally_; }
  std::size_t keys() const noexcept { return keys_; }
  std::size_t bytes() const noexcept { return (mask_ + 1 + (old_ ? old_mask_ + 1 : 0)) * sizeof(MatchBucket); }
  /// Calls visit(node) for every node, as long as it says true; the table must not change meanwhile.
  template <typename Visit>
  void each_while(Visit visit) const;

 private:
  __extension__ using Wide = unsigned __int128;
  static constexpr std::size_t first_buckets = 16, keys_per_bucket = 4;

  static MatchLinks& links(MatchNode& node) noexcept { return Filing::links(node); }

  /// One wide multiplication, its halves folded (as in wyhash); seeded because peers choose the tags. The second factor
  /// is odd, so that no key wipes out the low bits of the first.
  std::uint64_t hash(const MatchKey& key) const noexcept {
    const Wide product = static_cast<Wide>(key.tag ^ seed_) * ((std::rotl(key.who, 32) << 1 | 1) ^ factor_);
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
  MatchBucket& bucket(std::uint64_t h) const noexcept {
    if (old_ != nullptr) [[unlikely]] {
      const std::size_t i = h & old_mask_;
      if (i >= moved_) return old_[i];
    }
    return table_[h & mask_];
  }
  /// find(), but no search in the sense of the statistics: only a step.
  [[gnu::always_inline]] MatchNode* find_to_change(const MatchKey& key, Place& place) const noexcept {
    if constexpr (Counting::on) {
      const matching::Tally before = tally_;
      MatchNode* const found = find(key, place);
      tally_.attempts = before.attempts, tally_.lines = before.lines;
      return found;
    } else {
      return find(key, place);
    }
  }
  void append(MatchNode& head, MatchNode& node) noexcept;
  /// Keeps the full slots of a bucket in front.
  void close_gap(MatchBucket& b, unsigned hole) noexcept;
  void count_probe() const noexcept {
    if constexpr (Counting::on) ++tally_.probes, ++tally_.lines;
  }
  void count_compared() const noexcept {
    if constexpr (Counting::on) ++tally_.probes, ++tally_.lines, ++tally_.attempts;
  }
  /// Into the first free slot of its bucket, else in front of the overflow.
  static void insert_head(MatchBucket& b, MatchNode& head, std::uint64_t hash) noexcept;
  void grow();
  void move_one() noexcept;

  std::uint64_t seed_, factor_;
  MatchBucket* table_;
  std::size_t mask_;
  std::size_t keys_ = 0;
  std::size_t limit_ = keys_per_bucket * first_buckets;  // from so many keys on a push has more to do; 0 while growing
  MatchBucket* old_ = nullptr;                           // while growing
  std::size_t old_mask_ = 0, moved_ = 0;
  mutable matching::Tally tally_;  // zero unless Counting
};

template <typename Filing, typename Counting>
[[gnu::always_inline]] inline MatchNode* KeyedQueues<Filing, Counting>::find(const MatchKey& key,
                                                                             Place& place) const noexcept {
  place.hash = hash(key);
  MatchBucket& b = bucket(place.hash);
  place.bucket = &b;
  count_probe();
  for (unsigned same = b.having(MatchBucket::mark(place.hash)); same != 0; same &= same - 1, same &= same - 1) {
    const unsigned slot = static_cast<unsigned>(std::countr_zero(same)) / 2;
    MatchNode* node = b.head(slot);
    count_compared();
    if (Filing::key(*node) == key) [[likely]] {
      place.slot = slot;
      return node;
    }
  }
  place.slot = MatchBucket::slot_count;
  place.before = nullptr;
  for (MatchNode* node = b.overflow(); node != nullptr; node = links(*node).chain) {
    count_compared();
    if (Filing::key(*node) == key) return node;
    place.before = node;
  }
  return nullptr;
}

template <typename Filing, typename Counting>
void KeyedQueues<Filing, Counting>::append(MatchNode& head, MatchNode& node) noexcept {
  MatchLinks& first = links(head);
  links(node).prev = first.prev;
  links(*first.prev).next = &node;
  first.prev = &node;
}

template <typename Filing, typename Counting>
void KeyedQueues<Filing, Counting>::push(MatchNode& node) {
  if (keys_ >= limit_) [[unlikely]] {
    if (old_ == nullptr) grow();
    move_one();
  }
  links(node) = MatchLinks{};
  Place place;
  if (MatchNode* head = find_to_change(Filing::key(node), place); head != nullptr) {
    append(*head, node);
    return;
  }
  links(node).prev = &node;
  ++keys_;
  insert_head(*place.bucket, node, place.hash);
}

template <typename Filing, typename Counting>
[[gnu::always_inline]] inline void KeyedQueues<Filing, Counting>::insert_head(MatchBucket& b, MatchNode& head,
                                                                              std::uint64_t h) noexcept {
  const unsigned slot = b.count;
  if (slot != MatchBucket::slot_count) [[likely]] {
    b.marks[slot] = MatchBucket::mark(h);
    b.set_head(slot, &head);
    b.count = static_cast<std::uint16_t>(slot + 1);
    return;
  }
  links(head).chain = b.overflow();
  b.set_overflow(&head);
}

template <typename Filing, typename Counting>
[[gnu::always_inline]] inline void KeyedQueues<Filing, Counting>::close_gap(MatchBucket& b, unsigned hole) noexcept {
  if (MatchNode* head = b.overflow(); head != nullptr) [[unlikely]] {  // all slots are full: one of it takes the place
    b.set_overflow(links(*head).chain);
    links(*head).chain = nullptr;
    b.marks[hole] = MatchBucket::mark(hash(Filing::key(*head)));
    b.set_head(hole, head);
    return;
  }
  const unsigned last = b.count - 1u;
  b.marks[hole] = b.marks[last];
  b.set_head(hole, b.head(last));
  b.marks[last] = 0;
  b.count = static_cast<std::uint16_t>(last);
}

template <typename Filing, typename Counting>
[[gnu::always_inline]] inline void KeyedQueues<Filing, Counting>::remove_first(MatchNode& node,
                                                                               const Place& place) noexcept {
  MatchLinks& own = links(node);
  MatchNode* follower = own.next;
  if (follower != nullptr) {
    MatchLinks& fl = links(*follower);
    fl.prev = own.prev;  // the tail, perhaps itself
    fl.chain = own.chain;
  } else {
    --keys_;
  }
  if (place.slot == MatchBucket::slot_count) [[unlikely]] {
    MatchNode* instead = follower != nullptr ? follower : own.chain;
    if (place.before != nullptr) {
      links(*place.before).chain = instead;
    } else {
      place.bucket->set_overflow(instead);
    }
  } else if (follower != nullptr) {
    place.bucket->set_head(place.slot, follower);
  } else {
    close_gap(*place.bucket, place.slot);
  }
}

template <typename Filing, typename Counting>
void KeyedQueues<Filing, Counting>::remove(MatchNode& node) noexcept {
  MatchLinks& own = links(node);
  const bool first = links(*own.prev).next == nullptr;  // its prev is the tail
  if (!first && own.next != nullptr) {                  // in the middle: the table need not know
    links(*own.prev).next = own.next;
    links(*own.next).prev = own.prev;
    return;
  }
  Place place;
  MatchNode* head = find_to_change(Filing::key(node), place);
  assert(head != nullptr && "removing a node that is not in the table");
  if (head == &node) {
    remove_first(node, place);
    return;
  }
  links(*own.prev).next = nullptr;  // the tail
  links(*head).prev = own.prev;
}

template <typename Filing, typename Counting>
void KeyedQueues<Filing, Counting>::grow() {
  MatchBucket* larger = MatchBucket::allocate(2 * (mask_ + 1));
  old_ = table_;
  old_mask_ = mask_;
  moved_ = 0;
  table_ = larger;
  mask_ = 2 * mask_ + 1;
  limit_ = 0;
}

template <typename Filing, typename Counting>
void KeyedQueues<Filing, Counting>::move_one() noexcept {
  MatchBucket from = old_[moved_++];  // from now on bucket() leads to the new array
  const auto insert = [this](MatchNode& head) {
    const std::uint64_t h = hash(Filing::key(head));
    insert_head(bucket(h), head, h);
    if constexpr (Counting::on) ++tally_.moved;
  };
  for (unsigned slot = 0; slot < from.count; ++slot) insert(*from.head(slot));
  for (MatchNode* head = from.overflow(); head != nullptr;) {
    MatchNode* following = links(*head).chain;
    links(*head).chain = nullptr;
    insert(*head);
    head = following;
  }
  if (moved_ <= old_mask_) return;
  MatchBucket::release(old_, old_mask_ + 1);
  old_ = nullptr;
  limit_ = keys_per_bucket * (mask_ + 1);
}

template <typename Filing, typename Counting>
template <typename Visit>
void KeyedQueues<Filing, Counting>::each_while(Visit visit) const {
  const auto queue = [&](MatchNode* head) {
    for (MatchNode* node = head; node != nullptr; node = links(*node).next) {
      if (!visit(*node)) return false;
    }
    return true;
  };
  const auto walk = [&](const MatchBucket& b) {
    for (unsigned slot = 0; slot < b.count; ++slot) {
      if (!queue(b.head(slot))) return false;
    }
    for (MatchNode* head = b.overflow(); head != nullptr; head = links(*head).chain) {
      if (!queue(head)) return false;
    }
    return true;
  };
  for (std::size_t i = 0; i <= mask_; ++i) {
    if (!walk(table_[i])) return;
  }
  for (std::size_t i = moved_; old_ != nullptr && i <= old_mask_; ++i) {
    if (!walk(old_[i])) return;
  }
}

}  // namespace canele::comm
