// SPDX-License-Identifier: BSD-3-Clause
//
// The walk along blocks of lanes that are compared at once, and its three forms for the sets of instructions.
//
// Used by vector_list.cpp and fuzzy_list.cpp, under the engine's lock: one thread at a time.
//
// walk() has no target attribute of its own and must be inlined. It is then compiled for the target of the surrounding
// function, with the comparison for that target inlined in turn. A pointer to the whole walk is chosen once, not for
// each block.
#pragma once

#include <bit>
#include <cstdint>

#include "comm/matching/alternatives/isa.hpp"
#include "comm/matching/node.hpp"
#include "comm/matching/statistics.hpp"

namespace canele::comm::matching {

/// Candidates(block): returns bits of the lanes that may fit, including unused lanes. Accept(node, cost): compares in
/// full. Returns the oldest: the lowest lane of the first block.
template <typename Block, typename Candidates, typename Accept>
[[gnu::always_inline]] inline MatchNode* walk(const Block* block, Tally& cost, const Candidates& candidates,
                                              const Accept& accept) noexcept {
  for (; block != nullptr; block = block->next) {
    const std::uint32_t live = block->live();
    cost.lines += Block::lines_searched;
    cost.attempts += static_cast<std::uint64_t>(std::popcount(live));
    for (std::uint32_t left = candidates(*block) & live; left != 0; left &= left - 1) {
      MatchNode* node = block->node(static_cast<std::uint32_t>(std::countr_zero(left)));
      ++cost.lines;  // the line of the pointer
      if (accept(*node, cost)) return node;
    }
  }
  return nullptr;
}

/// A search as a function. Query: what is searched for; its members Scalar, Avx2 and Avx512 do the comparisons.
template <typename Block, typename Query>
using Search = MatchNode* (*)(const Block* first, const Query& query, Tally& cost) noexcept;

template <typename Block, typename Query>
MatchNode* search_scalar(const Block* first, const Query& query, Tally& cost) noexcept {
  return walk(first, cost, typename Query::Scalar{query}, typename Query::Accept{query});
}
#if CANELE_X86
template <typename Block, typename Query>
CANELE_TARGET_AVX2 MatchNode* search_avx2(const Block* first, const Query& query, Tally& cost) noexcept {
  return walk(first, cost, typename Query::Avx2{query}, typename Query::Accept{query});
}
template <typename Block, typename Query>
CANELE_TARGET_AVX512 MatchNode* search_avx512(const Block* first, const Query& query, Tally& cost) noexcept {
  return walk(first, cost, typename Query::Avx512{query}, typename Query::Accept{query});
}
#endif

template <typename Block, typename Query>
Search<Block, Query> search_for([[maybe_unused]] Isa isa) noexcept {
#if CANELE_X86
  if (isa == Isa::avx512) return search_avx512<Block, Query>;
  if (isa == Isa::avx2) return search_avx2<Block, Query>;
#endif
  return search_scalar<Block, Query>;
}

}  // namespace canele::comm::matching
