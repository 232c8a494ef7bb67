// SPDX-License-Identifier: BSD-3-Clause
#include "comm/collectives/exchange_cache.hpp"

#include <algorithm>
#include <utility>

#include "comm/collectives/algorithms/algorithms.hpp"

namespace canele::comm::collectives {

bool ExchangeCache::Entry::is_for(Edges out, Edges in, std::uint32_t limit) const {
  if (schedule == nullptr || sends != out.size() || edges.size() != out.size() + in.size() || inflight_limit != limit)
    return false;
  const auto equal = [](const canele_edge_t& a, const canele_edge_t& b) {
    return a.position == b.position && a.offset == b.offset && a.length == b.length;
  };
  return std::equal(out.begin(), out.end(), edges.begin(), equal) &&
         std::equal(in.begin(), in.end(), edges.begin() + static_cast<std::ptrdiff_t>(sends), equal);
}

std::shared_ptr<const Schedule> ExchangeCache::find_or_build(int rank, Edges sends, Edges receives,
                                                             std::uint32_t inflight_limit) {
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t which = (last_ + i) % entries;
    if (!kept_[which].is_for(sends, receives, inflight_limit)) continue;
    last_ = which;
    return kept_[which].schedule;
  }
  auto schedule = std::make_shared<const Schedule>(neighbor_exchange(rank, sends, receives, inflight_limit));
  ++built_;
  if (sends.size() + receives.size() > most_edges) return schedule;
  std::vector<canele_edge_t> edges;
  edges.reserve(sends.size() + receives.size());
  edges.assign(sends.begin(), sends.end());
  edges.insert(edges.end(), receives.begin(), receives.end());
  last_ = (last_ + entries - 1) % entries;
  kept_[last_] = {std::move(edges), sends.size(), inflight_limit, schedule};
  return schedule;
}

}  // namespace canele::comm::collectives
