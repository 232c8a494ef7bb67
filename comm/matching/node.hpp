// SPDX-License-Identifier: BSD-3-Clause
//
// The nodes that matching links together: posted receives and unexpected messages, embedded in objects with other
// owners.
//
// Used by the matcher under the engine's lock: one thread at a time.
//
// One node type serves both kinds. Under one key of one class, only one of the two kinds can be queued: a message that
// found a posted receive would not be unexpected.
#pragma once

#include <cstdint>

namespace canele::comm {

inline constexpr std::int32_t rank_any = -1;

struct MatchNode;
struct IndexEntry;
struct OrderBlock;

/// Links of one queue. In a table, prev of the head is the tail; `chain` links heads that overflow one bucket.
struct MatchLinks {
  MatchNode* prev = nullptr;
  MatchNode* next = nullptr;
  MatchNode* chain = nullptr;
};

/// Position of the entry in a matcher that keeps its entries outside of the nodes (alternatives/lane_list.hpp).
struct MatchPosition {
  void* block;
  std::uint32_t lane;
};

struct MatchNode {
  std::uint64_t tag = 0;
  std::uint64_t post_order = 0;  ///< order of posting or of arrival, over the whole engine.
  std::uint32_t session = 0;     ///< local number of the session.
  std::int32_t source = 0;       ///< rank, or rank_any
  union {
    MatchLinks links{};  ///< posted: the queue of its class; unexpected: the queue of the exact key
    MatchPosition position;
  };
  bool posted = false;           ///< a receive; otherwise an unexpected message.
  bool queued = false;           ///< in the matcher.
  std::uint8_t match_class = 0;  ///< posted: the class whose queue holds it
};

/// A receive that waits for its message.
struct PostedNode : MatchNode {
  static constexpr std::uint8_t no_slot = 0xff;
  std::uint8_t slot = no_slot;  ///< in the session's recent receives
  std::uint64_t mask = ~std::uint64_t{0};

  /// Sets the arguments for the next use. The other members belong to the matcher, which writes them before it reads
  /// them.
  void name(std::int32_t from, std::uint64_t with_tag, std::uint64_t under_mask) noexcept {
    tag = with_tag;
    mask = under_mask;
    source = from;
    queued = false;
  }
};

/// A slot of a block (arrival_index.hpp), or no slot, in one word. Blocks are aligned to cache lines and have less than
/// 32 slots, so the low bits are free.
class OrderSlot {
 public:
  OrderSlot() = default;
  OrderSlot(OrderBlock* block, unsigned slot) noexcept
      : bits_(reinterpret_cast<std::uintptr_t>(block) | slot << 1 | 1) {}
  OrderBlock* block() const noexcept { return reinterpret_cast<OrderBlock*>(bits_ & ~std::uintptr_t{63}); }
  unsigned slot() const noexcept { return static_cast<unsigned>(bits_ >> 1 & 31); }

 private:
  friend struct SecondaryIndex;
  std::uintptr_t bits_ = 0;  ///< the lowest bit is set if there is a slot
};

/// What a message is indexed by besides its exact key, in one word. Either nothing, or its slot in the only order, or
/// an index entry.
struct SecondaryIndex {
  OrderSlot order_slot;
  IndexEntry* entry() const noexcept {
    return (order_slot.bits_ & 1) == 0 ? reinterpret_cast<IndexEntry*>(order_slot.bits_) : nullptr;
  }
  void set(IndexEntry* entry) noexcept { order_slot.bits_ = reinterpret_cast<std::uintptr_t>(entry); }
};

/// A message that waits for its receive. One cache line, including the fields of its owner.
struct UnexpectedNode : MatchNode {
  std::uint8_t traits = 0;   ///< belongs to the owner.
  std::uint32_t stored = 0;  ///< belongs to the owner.
  SecondaryIndex secondary;  ///< used in sessions that were asked for messages by less than an exact key
};
static_assert(sizeof(UnexpectedNode) == 64 && sizeof(PostedNode) == 64);

}  // namespace canele::comm
