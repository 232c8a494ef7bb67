// SPDX-License-Identifier: BSD-3-Clause
//
// PostedWindow: the exact receives of a session as long as they are few, in the order in which they were posted.
//
// Who: the matcher; part of MatchSession.
// Threads: under the engine's lock.
// Surprise: the receive that was posted first is looked at first, and mostly it is the one. Only if it is not, all are
//     searched, a fixed number of steps: there are 64 slots.
//
//            oldest                        youngest
//   slots: │ a │ · │ b │ c │ … │ d │ · │ … │ z │ end: the next one goes here, if it is free
//            one bit each: taken or not;  32 bits of hash each, compared by fours;  the receive
//
// Slots are taken in turn, so that one place is empty behind each that was taken out of turn; and when none is left
// taken, the first is next: a request and its answer stay on one cache line.
//
// Rejected: links through the receives instead of slots (to find one is a walk); the table for all (a hash, a bucket
//     and the links of a queue were a third of the instructions of a small message); any free slot for the next one
//     (who is oldest would have to be looked for).
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

class PostedWindow {
 public:
  static constexpr unsigned slot_count = 64;

  /// most: how far apart the slots of the oldest and of the youngest may be, from 1 to slot_count.
  explicit PostedWindow(unsigned most = slot_count) noexcept : blocked_(~std::uint64_t{0} >> (most - 1)) {
    assert(most >= 1 && most <= slot_count);
  }

  bool empty() const noexcept { return taken_ == 0; }
  /// Of a window that is not empty.
  PostedNode& oldest() const noexcept { return *receives_[oldest_slot()]; }
  PostedNode& youngest() const noexcept {
    return *receives_[(end_ - 1 - static_cast<unsigned>(std::countl_zero(from_end()))) % slot_count];
  }

  /// false: there is no room.
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
  /// The oldest is taken out, if it is for such a message; else nullptr. Of a window that is not empty.
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
  /// The oldest for such a message, or nullptr. Counts what it looks at.
  template <typename Counting>
  PostedNode* find(std::uint64_t tag, std::int32_t source, matching::Tally& tally) const noexcept;
  /// visit(PostedNode&) for each, the oldest first; nothing may change meanwhile.
  template <typename Visit>
  void each(Visit visit) const {
    for (std::uint64_t left = from_end(); left != 0; left &= left - 1) visit(*receives_[slot_of_lowest(left)]);
  }

 private:
  /// The taken slots from `end_` on, which are those from the oldest on.
  std::uint64_t from_end() const noexcept { return std::rotr(taken_, static_cast<int>(end_)); }
  unsigned slot_of_lowest(std::uint64_t of_from_end) const noexcept {
    return (end_ + static_cast<unsigned>(std::countr_zero(of_from_end))) % slot_count;
  }
  unsigned oldest_slot() const noexcept { return slot_of_lowest(from_end()); }
  static std::uint32_t hash(std::uint64_t tag, std::int32_t source) noexcept {
    const std::uint64_t both = tag ^ std::uint64_t{static_cast<std::uint32_t>(source)} << 32;
    return static_cast<std::uint32_t>(both * 0x9e3779b97f4a7c15u >> 32);
  }
  /// Of 16 slots, those that have this hash, a bit each.
  unsigned having(std::uint32_t hash, unsigned first) const noexcept;

  std::uint64_t taken_ = 0;
  std::uint64_t blocked_;  ///< who is posted must have none of these, from `end_` on
  unsigned end_ = 0;
  alignas(16) std::uint32_t hashes_[slot_count] = {};
  PostedNode* receives_[slot_count] = {};
};

inline unsigned PostedWindow::having(std::uint32_t wanted, unsigned first) const noexcept {
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
PostedNode* PostedWindow::find(std::uint64_t tag, std::int32_t source, matching::Tally& tally) const noexcept {
  const auto look_at = [&](const PostedNode& receive) {
    if constexpr (Counting::on) ++tally.probes, ++tally.attempts, tally.lines += 2;  // its slot, and itself
    return receive.tag == tag && receive.source == source;
  };
  if (taken_ == 0) return nullptr;
  if (PostedNode& first = oldest(); look_at(first)) return &first;
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
    if (look_at(receive)) return &receive;
  }
  return nullptr;
}

}  // namespace canele::comm
