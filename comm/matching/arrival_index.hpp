// SPDX-License-Identifier: BSD-3-Clause
//
// ArrivalIndex: secondary indexes of the unexpected messages of one session, beside their exact key. Also the order of
// arrival, within the session or from one source, once it is needed.
//
// Used by matchers, for sessions that were asked for messages by less than an exact key. Under the engine's lock: one
// thread at a time.
//
// An order has no links from message to message. A message's position is a slot of a block, and a bit of the block
// tells whether the message is still in it. To remove one of many thousands touches only the first line of the block.
// The links of a list would be in four lines of two neighbours, which are in no cache. A position is one word. The
// message holds it directly if it is in one order and nothing else; otherwise the message has an index entry.
//
//   message ─▶ block, slot                                                                     the only order
//   message ─▶ IndexEntry: any source │ slot in the session's order │ slot in its source's     64 bytes
//                                      └─▶ block, slot
//   ArrivalOrder: first ─▶ │ live bits │ 27 slots ─▶ messages │ ⇄ block ⇄ … ⇄ last: its slots are given out in turn
//
// A block without messages is freed at once, and two neighbours with few messages in total are merged. So a program
// that keeps one message out of many does not keep a block for each.
// Rejected: links in every message (removal would fetch three more lines).
// Rejected: slots that are skipped when the front reaches them (a receive might have to skip a million).
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "comm/matching/chunk_pool.hpp"
#include "comm/matching/node.hpp"

namespace canele::comm {

class ArrivalOrder;

struct alignas(64) OrderBlock {
  static constexpr unsigned slots = 27;
  std::uint64_t live = 0;  ///< a bit for each message that is in a slot.
  ArrivalOrder* order = nullptr;
  OrderBlock* earlier = nullptr;
  OrderBlock* later = nullptr;
  std::uint32_t given = 0, left = 0;  ///< slots that were ever given out; messages that are still in them
  UnexpectedNode* messages[slots];
};
static_assert(sizeof(OrderBlock) == 256);

/// Entries of a message in secondary indexes, if it is in more than one order.
struct alignas(64) IndexEntry {
  MatchLinks any_source;
  OrderSlot in_session, from_source;
};
static_assert(sizeof(IndexEntry) == 64);

using OrderBlocks = ChunkPool<OrderBlock, 16>;

class ArrivalOrder {
 public:
  enum class Of : std::uint8_t { session, source };

  bool empty() const noexcept { return first_ == nullptr; }
  UnexpectedNode* first() const noexcept { return first_ != nullptr ? first_in(*first_, first_->live) : nullptr; }
  /// Returns the message `distance` positions behind the first, if none between them was removed. Otherwise returns
  /// nullptr, or a message that may be another one.
  const UnexpectedNode* behind_first(unsigned distance) const noexcept {
    if (first_ == nullptr) return nullptr;
    unsigned slot = static_cast<unsigned>(std::countr_zero(first_->live)) + distance;
    const OrderBlock* block = first_;
    if (slot >= OrderBlock::slots) block = block->later, slot -= OrderBlock::slots;
    return block != nullptr && (block->live >> slot & 1) != 0 ? block->messages[slot] : nullptr;
  }
  /// Returns the message that came after it; nullptr: it was the last.
  static UnexpectedNode* after(UnexpectedNode& message, Of of) noexcept {
    const OrderSlot at = order_slot(message, of);
    const OrderBlock& block = *at.block();
    const std::uint64_t rest = block.live & ~((std::uint64_t{2} << at.slot()) - 1);
    if (rest != 0) return first_in(block, rest);
    return block.later != nullptr ? first_in(*block.later, block.later->live) : nullptr;
  }
  /// Appends the youngest message. Requires a spare block. Without an index entry, the message is in no other order.
  void append(UnexpectedNode& message, Of of, OrderBlocks& blocks) noexcept {
    assert(order_slot(message, of).block() == nullptr);
    if (last_ == nullptr || last_->given == OrderBlock::slots) add(blocks.take());
    put(*last_, message, of);
  }
  /// Removes the message. Returns its order, which may be empty now.
  static ArrivalOrder& remove(UnexpectedNode& message, Of of, OrderBlocks& blocks) noexcept {
    const OrderSlot at = std::exchange(order_slot(message, of), {});
    OrderBlock& block = *at.block();
    ArrivalOrder& order = *block.order;
    assert((block.live >> at.slot() & 1) != 0);  // reading the slot itself would miss the cache
    block.live &= ~(std::uint64_t{1} << at.slot());
    if (--block.left == 0) {
      order.drop(block, blocks);
    } else if (block.left < few) {
      order.join(block, of, blocks);
    }
    return order;
  }

 private:
  static constexpr unsigned few = 4;  ///< two neighbours with at most so many messages are merged

  static OrderSlot& order_slot(UnexpectedNode& message, Of of) noexcept {
    IndexEntry* const entry = message.secondary.entry();
    if (entry == nullptr) return message.secondary.order_slot;
    return of == Of::session ? entry->in_session : entry->from_source;
  }
  static UnexpectedNode* first_in(const OrderBlock& block, std::uint64_t live) noexcept {
    return block.messages[std::countr_zero(live)];
  }
  static void put(OrderBlock& block, UnexpectedNode& message, Of of) noexcept {
    const unsigned slot = block.given++;
    ++block.left;
    block.messages[slot] = &message;
    block.live |= std::uint64_t{1} << slot;
    order_slot(message, of) = {&block, slot};
  }
  void add(OrderBlock& block) noexcept {
    block.order = this;
    block.earlier = last_;
    (last_ != nullptr ? last_->later : first_) = &block;
    last_ = &block;
  }
  void drop(OrderBlock& block, OrderBlocks& blocks) noexcept {
    (block.earlier != nullptr ? block.earlier->later : first_) = block.later;
    (block.later != nullptr ? block.later->earlier : last_) = block.earlier;
    blocks.give_back(block);
  }
  void join(OrderBlock& block, Of of, OrderBlocks& blocks) noexcept {
    const auto fit = [](const OrderBlock* a, const OrderBlock* b) {
      return a != nullptr && b != nullptr && a->left + b->left <= few;
    };
    if (fit(&block, block.later)) {
      move_into(block, *block.later, of, blocks);
    } else if (fit(block.earlier, &block)) {
      move_into(*block.earlier, block, of, blocks);
    }
  }
  void move_into(OrderBlock& block, OrderBlock& later, Of of, OrderBlocks& blocks) noexcept {
    UnexpectedNode* all[few];
    unsigned count = 0;
    for (const OrderBlock* one : {&block, &later}) {
      for (std::uint64_t live = one->live; live != 0; live &= live - 1) all[count++] = first_in(*one, live);
    }
    block.live = block.given = block.left = 0;
    for (unsigned i = 0; i < count; ++i) put(block, *all[i], of);
    drop(later, blocks);
  }

  OrderBlock* first_ = nullptr;
  OrderBlock* last_ = nullptr;
};

/// The messages of one source: the entry for that key in the table of receives for any tag.
struct SourceOrder : MatchNode, ArrivalOrder {};

class ArrivalIndex {
 public:
  bool empty() const noexcept { return entries_.in_use() + blocks_.in_use() + sources_.in_use() == 0; }
  /// Reserves memory, so that no later call fails: for `more` index entries, and for `order_slots` slots of messages in
  /// orders, of which `orders` may be new. Throws std::bad_alloc; then nothing has changed.
  void reserve(std::size_t more, std::size_t order_slots, std::size_t orders) {
    entries_.reserve(more);
    blocks_.reserve(order_slots / OrderBlock::slots + orders);
    sources_.reserve(orders);
  }
  /// Gives the message an index entry. If the message had a position, it is in the order `had`.
  void add_entry(UnexpectedNode& message, ArrivalOrder::Of had) noexcept {
    assert(message.secondary.entry() == nullptr);
    IndexEntry& entry = entries_.take();
    (had == ArrivalOrder::Of::session ? entry.in_session : entry.from_source) = message.secondary.order_slot;
    message.secondary.set(&entry);
  }
  /// It is in no order.
  void remove_entry(UnexpectedNode& message) noexcept {
    entries_.give_back(*message.secondary.entry());
    message.secondary.set(nullptr);
  }

  const ArrivalOrder& order() const noexcept { return order_; }
  UnexpectedNode* first() const noexcept { return order_.first(); }
  static UnexpectedNode* after(UnexpectedNode& message) noexcept {
    return ArrivalOrder::after(message, ArrivalOrder::Of::session);
  }
  void append(UnexpectedNode& message) noexcept { order_.append(message, ArrivalOrder::Of::session, blocks_); }
  void remove(UnexpectedNode& message) noexcept { ArrivalOrder::remove(message, ArrivalOrder::Of::session, blocks_); }

  SourceOrder& new_source() noexcept { return sources_.take(); }
  void end_source(SourceOrder& source) noexcept { sources_.give_back(source); }
  void append(SourceOrder& source, UnexpectedNode& message) noexcept {
    source.ArrivalOrder::append(message, ArrivalOrder::Of::source, blocks_);
  }
  /// Returns the source, which may have no message now.
  SourceOrder& remove_from_source(UnexpectedNode& message) noexcept {
    return static_cast<SourceOrder&>(ArrivalOrder::remove(message, ArrivalOrder::Of::source, blocks_));
  }

 private:
  ChunkPool<IndexEntry, 64> entries_;
  OrderBlocks blocks_;
  ChunkPool<SourceOrder, 8> sources_;
  ArrivalOrder order_;
};

}  // namespace canele::comm
