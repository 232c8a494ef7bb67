// SPDX-License-Identifier: BSD-3-Clause
//
// Buffered sends: the data is copied to memory that the peer reads, so that the sending rank goes on. See
// rendezvous/buffered.hpp.
//
// Any thread, without the engine's lock.
#pragma once

#include <cstdint>

#include "comm/engine/engine.hpp"
#include "comm/rendezvous/buffered.hpp"

namespace canele::comm::buffered {

/// Copies the data to the broadcast segment that the peer reads; takes as long as a copy. Returns nullptr if the peer
/// reads none, or there is no room.
Copy* put(Engine& engine, int peer, const void* data, std::uint64_t length);
/// Sends the copy to the peer. Returns false, with nothing sent, if the peer cannot be reached in this way.
bool send(Engine& engine, Session& session, int peer, std::uint64_t tag, std::int32_t priority, Copy& copy);

}  // namespace canele::comm::buffered
