// SPDX-License-Identifier: BSD-3-Clause
//
// From packets to chunks: step 2 of a receive.
//
// Any thread may call it, under the engine's lock.
#pragma once

#include <cstddef>
#include <span>

#include "comm/state/context.hpp"

namespace canele::comm::link {

/// Does step 2 for the chunks of a packet, its number taken off. Returns the verdict on the packet. *done is the number
/// of its bytes that were parsed in an earlier call; the call resets it to 0, unless its verdict is retry.
Verdict parse_chunks(Context& context, Peer& peer, std::span<const std::byte> bytes,
                     std::size_t* done) CANELE_UNDER_LOCK;

}  // namespace canele::comm::link
