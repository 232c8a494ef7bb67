// SPDX-License-Identifier: BSD-3-Clause
//
// Permissions: an origin may access a region by itself, without the target, through a driver whose rma() any thread may
// call.
//
//   target                                           origin
//   on_attach ─▶ permit ───── attached ────────────▶ on_attached ─▶ RemoteKey::direct ─▶ post/direct_access
//   close_permissions, is_accessed ◀── AccessPermit ─────────────────────────┘
//   on_detach ─▶ drop_permission
//
// The answer names the attach by its number, which both ends count. So an origin that has closed the key meanwhile, and
// uses its index again, ignores the answer.
//
// Called by the thread that holds the engine's lock. Rejected: a permission in the key itself. It would need a word for
// each rank of the host, which most never use.
#pragma once

#include <cstdint>
#include <span>

#include "comm/state/context.hpp"
#include "comm/state/one_sided.hpp"
#include "comm/wire/wire.hpp"

namespace canele::comm::one_sided {

/// Gives the origin a permission for the region that it has just attached by `index`, if the driver to it can.
void permit(Context& context, Peer& peer, Region& region, std::uint32_t index) CANELE_UNDER_LOCK;
/// Ends what the origin has by `index`, which it has given up.
Verdict drop_permission(Context& context, Peer& peer, std::uint32_t index) CANELE_UNDER_LOCK;
/// Accesses by origins themselves begin no more.
void close_permissions(const Region& region);
/// Returns whether an origin that is alive is still accessing the region by itself.
bool is_accessed(const Context& context, const Region& region) CANELE_UNDER_LOCK;
/// Ends the permissions of a region that is not accessed.
void end_permissions(Region& region) CANELE_UNDER_LOCK;

Verdict on_attached(Context& context, Peer& peer, const wire::Head& head,
                    std::span<const std::byte> payload) CANELE_UNDER_LOCK;

/// The peer is lost, as an origin and as a target.
void end_direct_accesses(Context& context, Peer& peer) CANELE_UNDER_LOCK;

}  // namespace canele::comm::one_sided
