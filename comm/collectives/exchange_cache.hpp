// SPDX-License-Identifier: BSD-3-Clause
//
// ExchangeCache: the schedules of the last few exchanges with neighbours. A program exchanges with the same edges again
// and again, and to compare edges takes a fraction of the time to build a schedule of them.
//
// Used by a Group, for one thread at a time.
#pragma once

#include <canele/collectives.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/collectives/algorithms/schedule.hpp"

namespace canele::comm::collectives {

class ExchangeCache {
 public:
  using Edges = std::span<const canele_edge_t>;
  static constexpr std::size_t entries = 4;        ///< as many as a program with some fields and two directions needs
  static constexpr std::size_t most_edges = 4096;  ///< of an exchange that is kept

  /// Returns the schedule of an exchange of the rank at position `rank`, which is the same in all calls; see
  /// neighbor_exchange(). std::bad_alloc: nothing has changed.
  std::shared_ptr<const Schedule> find_or_build(int rank, Edges sends, Edges receives, std::uint32_t inflight_limit);
  std::uint64_t built() const { return built_; }

 private:
  struct Entry {
    std::vector<canele_edge_t> edges;  ///< the sends, then the receives
    std::size_t sends = 0;
    std::uint32_t inflight_limit = 0;
    std::shared_ptr<const Schedule> schedule;
    bool is_for(Edges out, Edges in, std::uint32_t limit) const;
  };
  std::array<Entry, entries> kept_;
  std::size_t last_ = 0;  ///< the one that was used last; the one before it is replaced
  std::uint64_t built_ = 0;
};

}  // namespace canele::comm::collectives
