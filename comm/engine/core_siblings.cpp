// SPDX-License-Identifier: BSD-3-Clause
//
// Ranks on one processing unit.
#include "comm/engine/core_siblings.hpp"

#include <algorithm>

#include "comm/engine/engine.hpp"

namespace canele::comm {

void CoreSiblings::find(Platform& platform, int own, int size) {
  constexpr std::size_t few = 15;  // checking more of them takes as long as a context switch
  here_.clear();
  const int unit = platform.share_of_units(static_cast<unsigned>(own));
  if (unit < 0) return;
  for (int rank = 0; rank < size && here_.size() <= few; ++rank) {
    if (rank != own && platform.share_of_units(static_cast<unsigned>(rank)) == unit) here_.push_back({rank, 0});
  }
  if (here_.size() > few) here_.clear();
}

bool CoreSiblings::is_here(int rank) const noexcept {
  return std::any_of(here_.begin(), here_.end(), [rank](const Sibling& one) { return one.rank == rank; });
}

bool CoreSiblings::expects_from_elsewhere(const Request& request) const noexcept {
  if (here_.empty() || request.kind != Request::Kind::receive) return false;
  const PostedNode& node = request.receive.node;
  return node.source >= 0 && node.mask == CANELE_TAG_EXACT && !is_here(node.source);
}

bool CoreSiblings::all_wait(const Engine& engine, const Request& receive) noexcept {
  bool all = true;
  for (Sibling& one : here_) {
    const Peer* const peer = engine.peers[one.rank];
    const std::uint32_t now = peer != nullptr ? peer->next_in : one.seen;
    all = all && now != one.seen &&
          engine.matcher.peek(receive.session->match, receive.receive.node.tag, one.rank) == nullptr;
    one.seen = now;
  }
  return all;
}

}  // namespace canele::comm
