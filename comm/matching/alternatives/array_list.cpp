// SPDX-License-Identifier: BSD-3-Clause
//
// ArrayList: a linked list of arrays, with two entries in each block of one cache line. From M. Dosanjh, 2017, section
// 5.3, but with 64-bit tags and with sessions.
//
// Because of the longer key, a line has no room for a third message (in the source: 2 receives of 24 bytes, or 3
// messages of 16). Masks would not fit either, so the class of a receive is in the upper bits of its pointer.
//
//   block: │ tag `who` node │ tag `who` node │ next prev │    64 bytes, on one line
#include "comm/matching/alternatives/lane_list.hpp"
#include "comm/matching/alternatives/structures.hpp"

namespace canele::comm::matching {
namespace {

struct alignas(64) PairBlock {
  static constexpr std::uint32_t lanes = 2;
  struct Entry {
    std::uint64_t tag, who;
    std::uint64_t node;  // 48 bits of pointer, the class above them; 0: no entry
  };
  Entry entries[lanes] = {};
  PairBlock* next = nullptr;
  PairBlock* prev = nullptr;

  void set(std::uint32_t lane, const MatchNode& node) noexcept {
    const auto pointer = reinterpret_cast<std::uintptr_t>(&node);
    entries[lane] = {node.tag, who_of(node.session, node.source), pointer | std::uint64_t{node.match_class} << 48};
  }
  void clear(std::uint32_t lane) noexcept { entries[lane] = {}; }
  unsigned live() const noexcept { return (entries[0].node != 0 ? 1u : 0u) | (entries[1].node != 0 ? 2u : 0u); }
  MatchNode* node(std::uint32_t lane) const noexcept {
    return reinterpret_cast<MatchNode*>(entries[lane].node & ~(std::uint64_t{0xffff} << 48));
  }
  MatchClass match_class(std::uint32_t lane) const noexcept {
    return static_cast<MatchClass>(entries[lane].node >> 48);
  }
};
static_assert(sizeof(PairBlock) == 64);

/// Returns the first entry for which fits(block, lane) holds.
template <typename Fits>
MatchNode* walk(const PairBlock* block, Tally& cost, Fits fits) noexcept {
  for (; block != nullptr; block = block->next) {
    ++cost.lines;
    for (std::uint32_t lane = 0; lane < PairBlock::lanes; ++lane) {
      if (block->entries[lane].node == 0) continue;
      ++cost.attempts;
      if (fits(*block, lane)) return block->node(lane);
    }
  }
  return nullptr;
}

class ArrayList final : public LaneAlternative<PairBlock, PairBlock> {
 public:
  using LaneAlternative::LaneAlternative;

  std::size_t bytes() const noexcept override { return sizeof *this + bytes_of_lists(); }

 protected:
  PostedNode* search(const Envelope& message, Tally& cost) const noexcept override {
    const std::uint64_t who = who_of(message.session, message.source);
    const auto fitting = [&](const PairBlock& block, std::uint32_t lane) {
      const PairBlock::Entry& entry = block.entries[lane];
      const bool same_session = (entry.who ^ who) >> 32 == 0;
      switch (block.match_class(lane)) {
        case MatchClass::exact:
          return entry.tag == message.tag && entry.who == who;
        case MatchClass::any_source:
          return entry.tag == message.tag && same_session;
        case MatchClass::any_tag:
          return entry.who == who;
        case MatchClass::any_any:
          return same_session;
        default:
          ++cost.verified;
          cost.lines += 2;
          return fits(static_cast<const PostedNode&>(*block.node(lane)), message);
      }
    };
    return static_cast<PostedNode*>(walk(posted_.first(), cost, fitting));
  }
  UnexpectedNode* search(const MatchSession&, const Wanted& wanted, Tally& cost) const noexcept override {
    const std::uint64_t who = who_of(wanted.session, wanted.source), who_mask = who_mask_of(wanted.source);
    const auto fitting = [&](const PairBlock& block, std::uint32_t lane) {
      const PairBlock::Entry& entry = block.entries[lane];
      return (((entry.tag ^ wanted.tag) & wanted.mask) | ((entry.who ^ who) & who_mask)) == 0;
    };
    return static_cast<UnexpectedNode*>(walk(unexpected_.first(), cost, fitting));
  }
};

}  // namespace

std::unique_ptr<Alternative> make_array_list(Regions* regions) { return std::make_unique<ArrayList>(regions); }

}  // namespace canele::comm::matching
