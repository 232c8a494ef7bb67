// SPDX-License-Identifier: BSD-3-Clause
//
// The copy of a multicast's data that several destinations of a host read.
//
// Called by the thread that posts, without the engine's lock.
#pragma once

#include "comm/engine/engine.hpp"
#include "comm/multicast/state.hpp"

namespace canele::comm::multicast {

/// Copies the data of a multicast to the broadcast segment: memory that the driver fills once, and that several
/// destinations can read. Does nothing if there is no such memory. Called by the thread that posts, before the
/// multicast begins. Not under the lock: it may take as long as a copy.
void copy_to_broadcast_segment(Engine& engine, Multicast& whole, const canele_data_t& data);

}  // namespace canele::comm::multicast
