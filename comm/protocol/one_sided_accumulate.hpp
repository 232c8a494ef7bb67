// SPDX-License-Identifier: BSD-3-Clause
//
// Accumulates at the target: elements of a packet, combined into a region.
//
// Called by the thread that holds the engine's lock. The lock makes accumulates atomic where the processor cannot; see
// operators/accumulate.hpp.
#pragma once

#include <cstddef>
#include <span>

#include "comm/state/context.hpp"
#include "comm/wire/wire.hpp"

namespace canele::comm::one_sided {

Verdict on_accumulate(Context& context, Peer& peer, const wire::Head& head,
                      std::span<const std::byte> payload) CANELE_UNDER_LOCK;

}  // namespace canele::comm::one_sided
