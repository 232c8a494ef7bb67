// SPDX-License-Identifier: BSD-3-Clause
//
// What the handlers of one-sided operations at the target share: checks before, the count after.
//
// Used by one_sided_target and one_sided_accumulate. Called by the thread that holds the engine's lock.
#pragma once

#include <cstdint>
#include <memory>

#include "comm/state/context.hpp"
#include "comm/state/one_sided.hpp"
#include "comm/wire/wire.hpp"

namespace canele::comm::one_sided {

[[gnu::always_inline]] inline PeerAccess& access_of(Peer& peer) {
  if (peer.one_sided == nullptr) peer.one_sided = std::make_unique<PeerAccess>();
  return *peer.one_sided;
}

[[gnu::always_inline]] inline TargetLane& lane_of(PeerAccess& access, std::uint16_t lane) {
  if (access.lanes.size() <= lane) access.lanes.resize(lane + std::size_t{1});
  return access.lanes[lane];
}

/// Returns whether an operation of this lane may come now.
inline bool may_come(PeerAccess& access, std::uint16_t lane) { return !lane_of(access, lane).in_large_put; }
inline Verdict too_early() { return Verdict::violation("its operation follows a large put that is not over"); }

/// Finds the region that an operation names, and checks the access. Sets *region, or returns the error for the origin.
/// Inline: as a function, it would save and restore as many registers as it needs for its work.
[[gnu::always_inline]] inline int find_region(Context& context, const PeerAccess& access, const wire::Head& head,
                                              std::uint64_t length, std::uint32_t wanted,
                                              Region** region) CANELE_UNDER_LOCK {
  const Handle handle = head.seq < access.attached.size() ? access.attached[head.seq].region : Handle::none;
  *region = handle != Handle::none ? context.one_sided.regions.find(handle) : nullptr;
  if (*region == nullptr) return CANELE_EREVOKED;
  const Region& found = **region;
  const bool inside = length <= found.length && head.tag <= found.length - length;
  return inside && (found.access & wanted) != 0 ? CANELE_OK : CANELE_EACCESS;
}

/// Ends the last chunk of an operation, whose outcome is `error`.
Verdict conclude(Context& context, Peer& peer, const wire::Head& head, std::uint32_t flags,
                 int error) CANELE_UNDER_LOCK;

}  // namespace canele::comm::one_sided
