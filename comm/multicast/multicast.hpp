// SPDX-License-Identifier: BSD-3-Clause
//
// The root's half of a multicast: one send to each destination, and the tree that says which rank is the parent of
// which.
//
// Any thread may call these functions, under the engine's lock. api/ submits a
// multicast, and the ends of its sends come back here.
//
// A multicast that is sent flat is nothing but its sends. Only where one destination is the parent of another does an
// envelope carry a route, and does the data wait for a request.
#pragma once

#include <span>

#include "comm/multicast/state.hpp"
#include "comm/state/context.hpp"

namespace canele::comm::multicast {

/// Begins the submitted Multicast, which deletes itself in the end.
void begin(Context& context, CallOp& op) CANELE_UNDER_LOCK;

/// route_size() returns the bytes that the route of a send takes in its envelope; write_route() writes them.
std::size_t route_size(const DestinationSend& send);
std::byte* write_route(const Context& context, const DestinationSend& send, std::byte* out) CANELE_UNDER_LOCK;

}  // namespace canele::comm::multicast
