// SPDX-License-Identifier: BSD-3-Clause
//
// RecentReceives: the exact receives of a session while they are few, in the order of posting.
//
// Part of MatchSession; used by the matcher under the engine's lock: one thread at a time.
//
// The receive that was posted first is examined first, and mostly it matches. Only if it does not, all are searched, in
// a fixed number of steps: there are 64 slots.
//
//            oldest                        youngest
//   slots: │ a │ · │ b │ c │ … │ d │ · │ … │ z │ end: the next receive goes here, if the slot is free
//            per slot: one bit, taken or not;  32 bits of hash, compared by fours;  the receive
//
// Slots are given out in turn, so a slot whose receive was removed out of turn stays empty. When no slot is taken, the
// first slot is next: a request and its answer stay on one cache line.
//
// Rejected: links through the receives instead of slots (a search is a walk).
// Rejected: the table for all receives (the hash, a bucket and the links of a queue are many instructions for a small
// message).
// Rejected: any free slot for the next receive (the oldest one would have to be searched for).
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "comm/matching/node.hpp"
#include "comm/matching/statistics.hpp"

namespace canele::comm {

class RecentReceives {
 public:
  static constexpr unsigned slot_count = 64;

  /// most: how far apart the slots of the oldest and of the youngest may be, from 1 to slot_count.
  explicit RecentReceives(unsigned most = slot_count) noexcept : blocked_(~std::uint64_t{0} >> (most - 1)) {
    assert(most >= 1 && most <= slot_count);
  }

  bool empty() const noexcept { return taken_ == 0; }
  /// Requires that there is one.
  PostedNode& oldest() const noexcept { return *receives_[oldest_slot()]; }
  PostedNode& youngest() const noexcept {
    return *receives_[(end_ - 1 - static_cast<unsigned>(std::countl_zero(from_end()))) % slot_count];
  }

  /// Returns false if there is no room.
  [[gnu::always_inline]] bool append(PostedNode& receive, std::uint64_t tag, std::int32_t source) noexcept {
    unsigned slot = 0;
    if (taken_ != 0) {
      if ((from_end() & blocked_) != 0) return false;
      slot = end_;
    }
    receives_[slot] = &receive;
    hashes_[slot] = hash(tag, source);
    receive.slot = static_cast<std::uint8_t>(slot);
    taken_ |= std::uint64_t{1} << slot;
    end_ = (slot + 1) % slot_count;
    return true;
  }
  /// Removes and returns the oldest, if it is for such a message; else returns nullptr. Requires that there
  /// is one.
  [[gnu::always_inline]] PostedNode* take_oldest(std::uint64_t tag, std::int32_t source) noexcept {
    const unsigned slot = oldest_slot();
    PostedNode* const receive = receives_[slot];
    if (receive->tag != tag || receive->source != source) return nullptr;
    assert(receive->slot == slot);
    taken_ &= ~(std::uint64_t{1} << slot);
    return receive;
  }
  void remove(const PostedNode& receive) noexcept {
    assert(holds(receive));
    taken_ &= ~(std::uint64_t{1} << receive.slot);
  }
  bool holds(const PostedNode& receive) const noexcept {
    return receive.slot < slot_count && (taken_ >> receive.slot & 1) != 0 && receives_[receive.slot] == &receive;
  }
  /// Returns the oldest for such a message, or nullptr. Counts the entries that it examines.
  template <typename Counting>
  PostedNode* find(std::uint64_t tag, std::int32_t source, matching::Tally& tally) const noexcept;
  /// Calls visit(PostedNode&) for each, the oldest first; nothing may change meanwhile.
  template <typename Visit>
  void each(Visit visit) const {
    for (std::uint64_t left = from_end(); left != 0; left &= left - 1) visit(*receives_[slot_of_lowest(left)]);
  }

 private:
  /// Returns the taken slots, rotated to begin at `end_`: the lowest bit that is set is the oldest.
  std::uint64_t from_end() const noexcept { return std::rotr(taken_, static_cast<int>(end_)); }
  unsigned slot_of_lowest(std::uint64_t of_from_end) const noexcept {
    return (end_ + static_cast<unsigned>(std::countr_zero(of_from_end))) % slot_count;
  }
  unsigned oldest_slot() const noexcept { return slot_of_lowest(from_end()); }
  static std::uint32_t hash(std::uint64_t tag, std::int32_t source) noexcept {
    const std::uint64_t both = tag ^ std::uint64_t{static_cast<std::uint32_t>(source)} << 32;
    return static_cast<std::uint32_t>(both * 0x9e3779b97f4a7c15u >> 32);
  }
  /// Returns those of 16 slots that have this hash, one bit each.
  unsigned having(std::uint32_t hash, unsigned first) const noexcept;

  std::uint64_t taken_ = 0;
  std::uint64_t blocked_;  ///< a new receive needs all of these slots, counted from `end_`, to be free
  unsigned end_ = 0;
  alignas(16) std::uint32_t hashes_[slot_count] = {};
  PostedNode* receives_[slot_count] = {};
};

inline unsigned RecentReceives::having(std::uint32_t wanted, unsigned first) const noexcept {
#ifdef __SSE2__
  const __m128i all = _mm_set1_epi32(static_cast<int>(wanted));
  const auto* const four = reinterpret_cast<const __m128i*>(hashes_ + first);
  const __m128i low = _mm_packs_epi32(_mm_cmpeq_epi32(four[0], all), _mm_cmpeq_epi32(four[1], all));
  const __m128i high = _mm_packs_epi32(_mm_cmpeq_epi32(four[2], all), _mm_cmpeq_epi32(four[3], all));
  return static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(low, high)));
#else
  unsigned found = 0;
  for (unsigned i = 0; i < 16; ++i) found |= unsigned{hashes_[first + i] == wanted} << i;
  return found;
#endif
}

template <typename Counting>
PostedNode* RecentReceives::find(std::uint64_t tag, std::int32_t source, matching::Tally& tally) const noexcept {
  const auto matches = [&](const PostedNode& receive) {
    if constexpr (Counting::on) ++tally.probes, ++tally.attempts, tally.lines += 2;  // its slot, and the node
    return receive.tag == tag && receive.source == source;
  };
  if (taken_ == 0) return nullptr;
  if (PostedNode& first = oldest(); matches(first)) return &first;
  const std::uint32_t wanted = hash(tag, source);
  std::uint64_t found = 0;
  for (unsigned first = 0; first < slot_count; first += 16) {
    if ((taken_ >> first & 0xffff) == 0) continue;
    if constexpr (Counting::on) ++tally.probes, ++tally.lines;
    found |= std::uint64_t{having(wanted, first)} << first;
  }
  found = std::rotr(found & taken_, static_cast<int>(end_));
  for (; found != 0; found &= found - 1) {
    PostedNode& receive = *receives_[slot_of_lowest(found)];
    if (matches(receive)) return &receive;
  }
  return nullptr;
}

}  // namespace canele::comm
