// SPDX-License-Identifier: BSD-3-Clause
//
// RelayBuffer: memory of the engine for the data of a multicast that a child requests before our own receive has a
// buffer. The sum of all relay buffers is limited. Data that does not fit is not forwarded.
//
// Any thread may call these functions, under the engine's lock; relay.cpp does. The copy into the user's buffer is a
// task that runs outside the lock.
//
// With a relay buffer, the user's receive reads nothing from the network, and no child send reads the user's buffer.
#pragma once

#include "comm/multicast/state.hpp"
#include "comm/state/context.hpp"

namespace canele::comm::multicast::relay_buffer {

/// Begins to fetch the data. Returns false if there is no room, or no peer left to ask.
bool begin(Context& context, IncomingMulticast& incoming) CANELE_UNDER_LOCK;
/// Returns the data that child sends read; nullptr if there is no relay buffer.
const canele_data_t* source(const IncomingMulticast& incoming);
/// Handles that the fetch has ended.
void on_filled(Context& context, IncomingMulticast& incoming, int outcome);
/// Lets a receive with a buffer take its data from the relay buffer. Returns false if there is none, or it will never
/// be full.
bool attach(Context& context, Request& request, IncomingMulticast& incoming);
/// Gives the memory back, when no child send or copy reads it.
void drop(Context& context, IncomingMulticast& incoming) CANELE_UNDER_LOCK;

}  // namespace canele::comm::multicast::relay_buffer
