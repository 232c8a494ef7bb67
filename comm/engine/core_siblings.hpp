// SPDX-License-Identifier: BSD-3-Clause
//
// CoreSiblings: the ranks that share this rank's processing unit, and whether any of them could use the unit now.
//
// api/ finds the siblings at start and asks before a wait gives the unit away.
//
// One thread calls find(), before others wait. The other functions are called under the engine's lock.
//
// The placement of ranks is not measured. It follows from how ranks choose their unit (CANELE_RANK_AFFINITY). If a rank
// has been moved since, the only harm is a wait that polls for some time in vain.
//
// Ranks that exchange messages with all others take turns on a unit. The last rank on a unit already has what its
// siblings have sent. The siblings wait, as it does, for ranks on other units. If those ranks are only slightly
// late, polling a moment longer finds their messages and saves a context switch. Otherwise the first rank of the unit
// switches once more than necessary. It is then the late one in the next round, when the other rank does likewise.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/state/request.hpp"
#include "comm/state/under_lock.hpp"
#include "ltask/platform.hpp"

namespace canele::comm {

class Engine;

class CoreSiblings {
 public:
  /// Finds the siblings of rank `own` among `size` ranks, all on this host and each pinned to its share of the units.
  /// A group of more than a few siblings counts as none.
  void find(Platform& platform, int own, int size);
  bool any() const noexcept { return !here_.empty(); }

  /// Returns whether no sibling could use the unit. Each of them has sent an envelope since the previous call. None
  /// of them has sent a message that still waits under the tag of `receive`, whose source is on another unit.
  bool all_wait(const Engine& engine, const Request& receive) noexcept CANELE_UNDER_LOCK;
  /// Returns whether the request is a receive from one rank that runs on another unit.
  bool expects_from_elsewhere(const Request& request) const noexcept;

 private:
  struct Sibling {
    int rank;
    std::uint32_t seen;  ///< number of envelopes from this rank at the last check
  };
  bool is_here(int rank) const noexcept;

  std::vector<Sibling> here_;
};

}  // namespace canele::comm
