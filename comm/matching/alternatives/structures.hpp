// SPDX-License-Identifier: BSD-3-Clause
//
// Shared by the files of the alternatives: the walk along linked nodes, and the function that creates each structure.
//
// Used in alternatives/ only, under the engine's lock: one thread at a time.
//
// An entry is one cache line: its key, post order and links are the first 64 bytes of the node.
#pragma once

#include <memory>

#include "comm/matching/alternative.hpp"
#include "comm/matching/alternatives/cache_warmer.hpp"
#include "comm/matching/alternatives/isa.hpp"

namespace canele::comm::matching {

std::unique_ptr<Alternative> make_plain_list();
std::unique_ptr<Alternative> make_hash_bins(std::uint64_t seed);
std::unique_ptr<Alternative> make_peer_lists();
std::unique_ptr<Alternative> make_array_list(Regions* regions);
std::unique_ptr<Alternative> make_vector_list(Isa isa, Regions* regions);
std::unique_ptr<Alternative> make_fuzzy_list(Isa isa, Regions* regions);

/// Returns the first node of a NodeFifo, from `node` on, that fits. Stops without a result at a node younger than
/// `limit`.
template <typename Node, typename Fits>
Node* first_that(MatchNode* node, Tally& cost, Fits fits, const MatchNode* limit = nullptr) noexcept {
  for (; node != nullptr; node = node->links.next) {
    ++cost.lines;
    if (limit != nullptr && node->post_order > limit->post_order) return nullptr;
    ++cost.attempts;
    if (fits(static_cast<const Node&>(*node))) return static_cast<Node*>(node);
  }
  return nullptr;
}

}  // namespace canele::comm::matching
