// SPDX-License-Identifier: BSD-3-Clause
//
// LaneList: a FIFO of blocks that hold several entries each, in lanes. The list behind arrays, vector and fuzzy, and
// the other common parts of these three.
//
// Used in alternatives/ only, under the engine's lock: one thread at a time.
//
// A lane is never filled again after its entry was removed, so that the order of the lanes is the order of the entries.
// A block returns to the pool when its last entry has left.
//
//   first ──▶ block [a b] ⇄ block [· c] ⇄ block [d ·] ◀── last        · removed, or not yet used (last block only)
//                                   ▲
//   node.position = {block, lane} ─────┘       so that any entry can be removed directly
//
// Rejected: filling holes (entries would move, and their nodes would need an update).
// Rejected: blocks from malloc (aligned to 16 bytes, so that a block of 64 bytes lies on two lines).
//
// Requirements on Block: next, prev, lanes, set(lane, node), clear(lane), live() (a bit for each lane in use),
// node(lane).
#pragma once

#include <bit>
#include <cstddef>
#include <forward_list>
#include <memory>
#include <new>
#include <vector>

#include "comm/matching/alternative.hpp"
#include "comm/matching/alternatives/cache_warmer.hpp"

namespace canele::comm::matching {

/// Allocates blocks in slabs, which return to the system with the pool.
template <typename Block>
class BlockPool {
 public:
  /// regions: to be told of each slab; nullptr: none.
  explicit BlockPool(Regions* regions) : regions_(regions) {}
  Block* take() {
    if (free_ == nullptr) add_slab();
    Block* block = free_;
    free_ = block->next;
    return new (block) Block;
  }
  void give_back(Block* block) noexcept {
    block->next = free_;
    free_ = block;
  }
  std::size_t bytes() const noexcept { return slabs_.size() * sizeof(Slab); }

 private:
  struct Slab {
    Block blocks[16];
  };
  void add_slab() {
    slabs_.push_back(std::make_unique<Slab>());  // aligned like a block
    Slab& slab = *slabs_.back();
    for (Block& block : slab.blocks) give_back(&block);
    if (regions_ == nullptr) return;
    const auto* const begin = reinterpret_cast<const std::byte*>(slab.blocks);
    regions_->add(slab_regions_.emplace_front(Region{begin, sizeof slab.blocks}));
  }
  Regions* const regions_;
  Block* free_ = nullptr;
  std::vector<std::unique_ptr<Slab>> slabs_;
  std::forward_list<Region> slab_regions_;  ///< not in the slabs: it would be a line for sixteen blocks
};

template <typename Block>
class LaneList {
  static_assert(alignof(Block) == 64 && sizeof(Block) % 64 == 0);

 public:
  explicit LaneList(Regions* regions) : pool_(regions) {}

  void append(MatchNode& node) {
    if (last_ == nullptr || used_ == Block::lanes) {
      Block* block = pool_.take();
      block->prev = last_;
      (last_ != nullptr ? last_->next : first_) = block;
      last_ = block;
      used_ = 0;
    }
    last_->set(used_, node);
    node.position = {last_, used_};
    ++used_;
  }
  void remove(MatchNode& node) noexcept {
    auto* const block = static_cast<Block*>(node.position.block);
    block->clear(node.position.lane);
    if (block->live() != 0) return;
    (block->prev != nullptr ? block->prev->next : first_) = block->next;
    (block->next != nullptr ? block->next->prev : last_) = block->prev;
    if (block->next == nullptr) used_ = Block::lanes;  // the previous block is full
    pool_.give_back(block);
  }
  const Block* first() const noexcept { return first_; }
  std::size_t bytes() const noexcept { return pool_.bytes(); }
  template <typename Visit>
  void each(Visit visit) const {
    for (const Block* block = first_; block != nullptr; block = block->next) {
      for (auto live = block->live(); live != 0; live &= live - 1) {
        visit(*block->node(static_cast<unsigned>(std::countr_zero(live))));
      }
    }
  }

 private:
  Block* first_ = nullptr;
  Block* last_ = nullptr;
  std::uint32_t used_ = 0;  // lanes used in the last block
  BlockPool<Block> pool_;
};

/// The common members of all blocks, beside the rows that are compared: the nodes of the lanes, and which lanes are in
/// use.
template <typename Block, std::uint32_t count>
struct alignas(64) Lanes {
  static constexpr std::uint32_t lanes = count;
  MatchNode* nodes[lanes] = {};
  alignas(64) std::uint32_t live_lanes = 0;
  Block* next = nullptr;
  Block* prev = nullptr;

  void keep(std::uint32_t lane, MatchNode& node) noexcept {
    nodes[lane] = &node;
    live_lanes |= std::uint32_t{1} << lane;
  }
  void clear(std::uint32_t lane) noexcept { live_lanes &= ~(std::uint32_t{1} << lane); }
  std::uint32_t live() const noexcept { return live_lanes; }
  MatchNode* node(std::uint32_t lane) const noexcept { return nodes[lane]; }
};

/// An alternative that keeps its receives and its messages in one LaneList each. A structure only adds how it searches
/// them.
template <typename PostedBlock, typename UnexpectedBlock>
class LaneAlternative : public Alternative {
 public:
  explicit LaneAlternative(Regions* regions) : posted_(regions), unexpected_(regions) {}

  void each(void (*visit)(void*, PostedNode&), void* context) const final {
    posted_.each([&](MatchNode& node) { visit(context, static_cast<PostedNode&>(node)); });
  }

 protected:
  void append(MatchSession&, PostedNode& receive) final { posted_.append(receive); }
  void append(MatchSession&, UnexpectedNode& message) final { unexpected_.append(message); }
  void remove(MatchSession&, PostedNode& receive) noexcept final { posted_.remove(receive); }
  void remove(MatchSession&, UnexpectedNode& message) noexcept final { unexpected_.remove(message); }
  std::size_t bytes_of_lists() const noexcept { return posted_.bytes() + unexpected_.bytes(); }

  LaneList<PostedBlock> posted_;
  LaneList<UnexpectedBlock> unexpected_;
};

}  // namespace canele::comm::matching
