// SPDX-License-Identifier: BSD-3-Clause
//
// KeyedQueues: a growing hash table from (session, tag, source) to a FIFO of match nodes. Every operation takes
// constant time, also while the table grows.
//
// Used by the matcher under the engine's lock: one thread at a time. It allocates only to grow; queues and collision
// chains run through the nodes.
//
//   buckets (64 B, one cache line each)                         nodes (in requests or messages)
//   ┌─────────────────────┬────────┬───────────────┬──────────┐     overflow only if all slots are full
//   │ 7 × 16 bits of hash │ unused │ 7 × pointer   │ overflow │──▶ head ─chain▶ head ─▶ null      (rare)
//   └─────────────────────┴────────┴───────┬───────┴──────────┘     pointers have 48 bits
//                                          └──▶ head ⇄ next ⇄ … ⇄ tail    FIFO of one key; head.prev ──▶ tail
//
// All seven hashes of a bucket are compared at once, so that a full bucket costs no more instructions than an empty
// one. Growth doubles the array and moves one old bucket per insertion. Until all are moved, a bucket is looked up
// where it currently is:
//
//   old: [moved moved moved | not yet …]     new: [ …… twice as long …… ]
//
// Rejected: open addressing with stored keys (24 B for each entry: 2.6 entries in a line, and deletion leaves
// tombstones).
// Rejected: one fixed array of chains (degrades beyond its size).
// Rejected: rehashing at once (a noticeable pause with many entries).
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "comm/matching/node.hpp"
#include "comm/matching/prefetch.hpp"
#include "comm/matching/statistics.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm {

struct MatchKey {
  std::uint64_t tag, who;  // `who`: session and source, in the layout of a node

  MatchKey(std::uint64_t t, std::uint32_t session, std::int32_t source) noexcept
      : tag(t), who(session | std::uint64_t{static_cast<std::uint32_t>(source)} << 32) {}
  /// The key of a node, read with two loads.
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
  static constexpr std::uint16_t no_fingerprint = 0;
  std::uint16_t fingerprints[slot_count];  // bits of the hash, or no_fingerprint
  std::uint16_t unused;
  unsigned char pointers[8 * 6];  // of the slots' heads, 48 bits each, then of the overflow

  static std::uint16_t fingerprint(std::uint64_t hash) noexcept { return static_cast<std::uint16_t>(hash >> 48 | 1); }
  /// Returns the slots with that fingerprint, which may be no_fingerprint: two equal bits for each slot.
  unsigned having(std::uint16_t wanted) const noexcept {
#ifdef __SSE2__
    const __m128i all = _mm_load_si128(reinterpret_cast<const __m128i*>(fingerprints));
    const __m128i same = _mm_cmpeq_epi16(all, _mm_set1_epi16(static_cast<short>(wanted)));
    return static_cast<unsigned>(_mm_movemask_epi8(same)) & 0x3fff;
#else
    unsigned found = 0;
    for (unsigned i = 0; i < slot_count; ++i) found |= fingerprints[i] == wanted ? 3u << 2 * i : 0u;
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

  /// Allocates fresh zero pages: an array of any size costs nothing until it is touched. Returns nullptr if there is no
  /// memory.
  static MatchBucket* allocate(std::size_t buckets) noexcept;
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

/// `Filing` defines how nodes are indexed. Its static links(MatchNode&) returns the links that this table uses, and its
/// static key(const MatchNode&) the key. `Counting`: see statistics.hpp.
template <typename Filing, typename Counting = matching::NotCounted>
class KeyedQueues {
 public:
  explicit KeyedQueues(std::uint64_t seed)
      : seed_(seed | 1),
        factor_(seed_ * 0x9e3779b97f4a7c16u),
        table_(MatchBucket::allocate(first_buckets)),
        mask_(first_buckets - 1) {
    if (table_ == nullptr) throw std::bad_alloc();
  }
  ~KeyedQueues() {
    MatchBucket::release(table_, mask_ + 1);
    if (old_ != nullptr) MatchBucket::release(old_, old_mask_ + 1);
  }
  KeyedQueues(const KeyedQueues&) = delete;
  KeyedQueues& operator=(const KeyedQueues&) = delete;

  /// Position at which find() found the head of a queue; valid until the table changes.
  struct Place {
    std::uint64_t hash = 0;
    MatchBucket* bucket = nullptr;
    unsigned slot = 0;            ///< slot_count: in the overflow
    MatchNode* before = nullptr;  ///< in the overflow: the node whose chain leads to it; nullptr: the bucket does
  };

  /// Returns the first node under the key, or nullptr.
  MatchNode* find(const MatchKey& key) const noexcept {
    Place place;
    return find(key, place);
  }
  MatchNode* find(const MatchKey& key, Place& place) const noexcept;
  /// Continues find() when the first slot with the key's fingerprint, the lowest of `same`, has another key, or there
  /// is no such slot.
  MatchNode* find_further(const MatchKey& key, Place& place, unsigned same) const noexcept;
  /// prefetch_hint() prefetches the bucket of the key, and returns the hash. Once the bucket is there, guess() returns
  /// the head that has the key's fingerprint, without reading that head.
  std::uint64_t prefetch_hint(const MatchKey& key) const noexcept {
    const std::uint64_t h = hash(key);
    prefetch_to_write(&bucket(h));
    return h;
  }
  const MatchNode* guess(std::uint64_t h) const noexcept {
    const MatchBucket& b = bucket(h);
    const unsigned same = b.having(MatchBucket::fingerprint(h));
    return same != 0 ? b.head(static_cast<unsigned>(std::countr_zero(same)) / 2) : nullptr;
  }
  const MatchNode* guess(const MatchKey& key) const noexcept { return guess(hash(key)); }
  /// Appends to the FIFO of the node's key. The second overload is for callers that have the key at hand. To load a key
  /// from a node whose fields were just written one by one would wait until they have left the store buffer.
  void push(MatchNode& node) { push(node, Filing::key(node)); }
  void push(MatchNode& node, const MatchKey& key);
  /// Prepends the node to its FIFO.
  void push_first(MatchNode& node, const MatchKey& key);
  /// Removes the first node of its FIFO, which find() has just found at `place`.
  void remove_first(MatchNode& node, const Place& place) noexcept;
  /// Removes the node, wherever it is in its FIFO.
  void remove(MatchNode& node) noexcept;
  MatchNode* next(MatchNode& node) const noexcept { return links(node).next; }

  const matching::Tally& tally() const noexcept { return tally_; }
  std::size_t keys() const noexcept { return keys_; }
  std::size_t bytes() const noexcept { return (mask_ + 1 + (old_ ? old_mask_ + 1 : 0)) * sizeof(MatchBucket); }
  /// Calls visit(node) for every node while it returns true; the table must not change meanwhile.
  template <typename Visit>
  void each_while(Visit visit) const;

 private:
  __extension__ using Wide = unsigned __int128;
  static constexpr std::size_t first_buckets = 16, keys_per_bucket = 4;

  static MatchLinks& links(MatchNode& node) noexcept { return Filing::links(node); }

  /// One wide multiplication, its halves folded (as in wyhash); seeded because peers choose the tags. The second factor
  /// is odd, so that no key can clear the low bits of the first.
  std::uint64_t hash(const MatchKey& key) const noexcept {
    const Wide product = static_cast<Wide>(key.tag ^ seed_) * ((std::rotl(key.who, 32) << 1 | 1) ^ factor_);
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
  [[gnu::always_inline]] MatchBucket& bucket(std::uint64_t h) const noexcept {
    if (old_ != nullptr) [[unlikely]] {
      const std::size_t i = h & old_mask_;
      if (i >= moved_) return old_[i];
    }
    return table_[h & mask_];
  }
  /// find() for a modification: counted as a step, not as a search.
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
  /// Finds the position of a head by its address. Reads no other node, except in an overflow.
  Place place_of(MatchNode& head) const noexcept;
  /// Starts a queue with the node; find() has searched for its key at `place` without success.
  [[gnu::always_inline]] void begin_queue(MatchNode& node, const Place& place) noexcept {
    links(node) = {&node, nullptr, nullptr};
    ++keys_;
    insert_head(*place.bucket, node, place.hash);
  }
  /// Replaces the pointer to the head at `place` by `instead`.
  static void replace_head(const Place& place, MatchNode* instead) noexcept {
    if (place.slot != MatchBucket::slot_count) [[likely]] {
      place.bucket->set_head(place.slot, instead);
    } else if (place.before != nullptr) {
      links(*place.before).chain = instead;
    } else {
      place.bucket->set_overflow(instead);
    }
  }
  /// Clears the slot after its head was removed. A head from the overflow, if there is one, takes its place.
  void vacate(MatchBucket& b, unsigned slot) noexcept;
  void count_probe() const noexcept {
    if constexpr (Counting::on) ++tally_.probes, ++tally_.lines;
  }
  void count_compared() const noexcept {
    if constexpr (Counting::on) ++tally_.probes, ++tally_.lines, ++tally_.attempts;
  }
  /// Inserts into a free slot of its bucket, or else in front of the overflow.
  static void insert_head(MatchBucket& b, MatchNode& head, std::uint64_t hash) noexcept;
  [[gnu::noinline]] void make_room() {
    if (old_ == nullptr && !grow()) return;
    move_one();
  }
  /// Returns false if there is no memory. The table stays as it is, only slower, and tries again when it holds a
  /// quarter more.
  bool grow() noexcept;
  void move_one() noexcept;

  std::uint64_t seed_, factor_;
  MatchBucket* table_;
  std::size_t mask_;
  std::size_t keys_ = 0;
  std::size_t limit_ = keys_per_bucket * first_buckets;  // a push with that many keys makes room; 0 while growing
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
  const unsigned same = b.having(MatchBucket::fingerprint(place.hash));
  if (same != 0) {
    place.slot = static_cast<unsigned>(std::countr_zero(same)) / 2;
    MatchNode* const node = b.head(place.slot);
    count_compared();
    if (Filing::key(*node) == key) [[likely]]
      return node;
  } else if (b.overflow() == nullptr) [[likely]] {
    return nullptr;
  }
  Place further = place;  // a copy: taking the address of `place` would force it into memory
  MatchNode* const node = find_further(key, further, same);
  place = further;
  return node;
}

template <typename Filing, typename Counting>
[[gnu::noinline]] MatchNode* KeyedQueues<Filing, Counting>::find_further(const MatchKey& key, Place& place,
                                                                         unsigned same) const noexcept {
  const MatchBucket& b = *place.bucket;
  while (same != 0 && (same &= same - 1, same &= same - 1) != 0) {
    place.slot = static_cast<unsigned>(std::countr_zero(same)) / 2;
    MatchNode* const node = b.head(place.slot);
    count_compared();
    if (Filing::key(*node) == key) return node;
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
[[gnu::always_inline]] inline void KeyedQueues<Filing, Counting>::push(MatchNode& node, const MatchKey& key) {
  if (keys_ >= limit_) [[unlikely]]
    make_room();
  Place place;
  MatchNode* const head = find_to_change(key, place);
  if (head == nullptr) return begin_queue(node, place);
  MatchNode* const last = std::exchange(links(*head).prev, &node);
  links(node) = {last, nullptr, nullptr};
  links(*last).next = &node;
}

template <typename Filing, typename Counting>
void KeyedQueues<Filing, Counting>::push_first(MatchNode& node, const MatchKey& key) {
  if (keys_ >= limit_) [[unlikely]]
    make_room();
  Place place;
  MatchNode* const head = find_to_change(key, place);
  if (head == nullptr) return begin_queue(node, place);
  MatchLinks& second = links(*head);
  links(node) = {second.prev, head, second.chain};
  second = {&node, second.next, nullptr};
  replace_head(place, &node);
}

template <typename Filing, typename Counting>
[[gnu::always_inline]] inline void KeyedQueues<Filing, Counting>::insert_head(MatchBucket& b, MatchNode& head,
                                                                              std::uint64_t h) noexcept {
  if (const unsigned free = b.having(MatchBucket::no_fingerprint); free != 0) [[likely]] {
    const unsigned slot = static_cast<unsigned>(std::countr_zero(free)) / 2;
    b.fingerprints[slot] = MatchBucket::fingerprint(h);
    b.set_head(slot, &head);
    return;
  }
  links(head).chain = b.overflow();
  b.set_overflow(&head);
}

template <typename Filing, typename Counting>
[[gnu::always_inline]] inline void KeyedQueues<Filing, Counting>::vacate(MatchBucket& b, unsigned slot) noexcept {
  b.fingerprints[slot] = MatchBucket::no_fingerprint;
  if (MatchNode* const head = b.overflow(); head != nullptr) [[unlikely]] {
    b.set_overflow(links(*head).chain);
    links(*head).chain = nullptr;
    insert_head(b, *head, hash(Filing::key(*head)));
  }
}

template <typename Filing, typename Counting>
[[gnu::always_inline]] inline void KeyedQueues<Filing, Counting>::remove_first(MatchNode& node,
                                                                               const Place& place) noexcept {
  MatchLinks& own = links(node);
  MatchNode* follower = own.next;
  if (follower != nullptr) {
    MatchLinks& fl = links(*follower);
    fl.prev = own.prev;  // the tail, possibly the follower itself
    fl.chain = own.chain;
  } else {
    --keys_;
  }
  if (place.slot == MatchBucket::slot_count) [[unlikely]] {
    replace_head(place, follower != nullptr ? follower : own.chain);
  } else if (follower != nullptr) {
    place.bucket->set_head(place.slot, follower);
  } else {
    vacate(*place.bucket, place.slot);
  }
}

template <typename Filing, typename Counting>
void KeyedQueues<Filing, Counting>::remove(MatchNode& node) noexcept {
  MatchLinks& own = links(node);
  const bool first = links(*own.prev).next == nullptr;  // prev of the first node is the tail
  if (!first && own.next != nullptr) {                  // in the middle: the table is not affected
    links(*own.prev).next = own.next;
    links(*own.next).prev = own.prev;
    return;
  }
  if (first) {
    remove_first(node, place_of(node));
    return;
  }
  Place place;
  MatchNode* const head = find_to_change(Filing::key(node), place);
  assert(head != nullptr && "removing a node that is not in the table");
  links(*own.prev).next = nullptr;  // the new tail
  links(*head).prev = own.prev;
}

template <typename Filing, typename Counting>
[[gnu::always_inline]] inline auto KeyedQueues<Filing, Counting>::place_of(MatchNode& head) const noexcept -> Place {
  Place place;
  place.hash = hash(Filing::key(head));
  MatchBucket& b = bucket(place.hash);
  place.bucket = &b;
  if constexpr (Counting::on) ++tally_.probes;
  for (unsigned same = b.having(MatchBucket::fingerprint(place.hash)); same != 0; same &= same - 1, same &= same - 1) {
    place.slot = static_cast<unsigned>(std::countr_zero(same)) / 2;
    if (b.head(place.slot) == &head) [[likely]]
      return place;
  }
  place.slot = MatchBucket::slot_count;
  for (MatchNode* one = b.overflow(); one != &head; one = links(*one).chain) {
    assert(one != nullptr && "removing a node that is not in the table");
    place.before = one;
  }
  return place;
}

template <typename Filing, typename Counting>
bool KeyedQueues<Filing, Counting>::grow() noexcept {
  MatchBucket* larger = CANELE_BUGGIFY(no_memory_table) ? nullptr : MatchBucket::allocate(2 * (mask_ + 1));
  if (larger == nullptr) [[unlikely]] {
    CANELE_COVER_RARE(table_stays_small);
    limit_ = keys_ + keys_ / 4;
    return false;
  }
  old_ = table_;
  old_mask_ = mask_;
  moved_ = 0;
  table_ = larger;
  mask_ = 2 * mask_ + 1;
  limit_ = 0;
  return true;
}

template <typename Filing, typename Counting>
void KeyedQueues<Filing, Counting>::move_one() noexcept {
  MatchBucket from = old_[moved_++];  // from now on bucket() leads to the new array
  const auto insert = [this](MatchNode& head) {
    const std::uint64_t h = hash(Filing::key(head));
    insert_head(bucket(h), head, h);
    if constexpr (Counting::on) ++tally_.moved;
  };
  for (unsigned slot = 0; slot < MatchBucket::slot_count; ++slot) {
    if (from.fingerprints[slot] != MatchBucket::no_fingerprint) insert(*from.head(slot));
  }
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
    for (unsigned slot = 0; slot < MatchBucket::slot_count; ++slot) {
      if (b.fingerprints[slot] != MatchBucket::no_fingerprint && !queue(b.head(slot))) return false;
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
