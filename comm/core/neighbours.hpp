// SPDX-License-Identifier: BSD-3-Clause
//
// Neighbours: the ranks that share this one's processing unit, and whether any of them could use it now.
//
// Who: api/ finds them at the start, and asks before a wait gives the unit away.
// Threads: find() one, before others wait; the rest under the engine's lock.
// Surprise: where they run is not asked, but follows from how ranks settle (CANELE_SPREAD). One that has been moved
//     makes a wait look for some time in vain, no more.
//
// Ranks that exchange messages with all others have their turns one after the other. The last one on a unit has what
// its neighbours have sent, and they wait as it does, for ranks of other units: if those are just behind, a look a
// moment later finds their messages, and saves a switch. Else the unit that was first switches once more than it need,
// and is the late one in the next round, when the other does the same.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/core/request.hpp"
#include "ltask/platform.hpp"

namespace canele::comm {

class Engine;

class Neighbours {
 public:
  /// Of rank `own` of `size`, all on this host and each settled on its share; with more than a few there are none.
  void find(Platform& platform, int own, int size);
  bool any() const noexcept { return !here_.empty(); }

  /// None of them could use the unit: each has sent something since the last time that this was asked, and nothing is
  /// expected of it under the tag of `receive`, which is to come from another unit.
  bool all_wait(const Engine& engine, const Request& receive) noexcept;
  /// Is it to come from there?
  bool expects_from_elsewhere(const Request& request) const noexcept;

 private:
  struct Neighbour {
    int rank;
    std::uint32_t seen;  ///< envelopes so far
  };
  bool is_here(int rank) const noexcept;

  std::vector<Neighbour> here_;
};

}  // namespace canele::comm
