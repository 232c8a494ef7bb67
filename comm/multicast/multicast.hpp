// SPDX-License-Identifier: BSD-3-Clause
//
// The root's half of a multicast: one send to each destination, and the tree that says which rank serves which.
//
// Any thread may call these functions, under the engine's lock. api/ submits a
// multicast, and the ends of its legs come back here.
//
// A multicast that is sent flat is nothing but its sends. Only where one destination serves another does an envelope
// carry a route, and does the data wait to be asked for.
#pragma once

#include <span>

#include "comm/multicast/state.hpp"
#include "comm/state/context.hpp"

namespace canele::comm::multicast {

/// Begins the submitted Multicast, which deletes itself in the end.
void begin(Context& context, CallOp& op);

/// route_size() returns the bytes that the route of a leg takes in its envelope; write_route() writes them.
std::size_t route_size(const Leg& leg);
std::byte* write_route(const Context& context, const Leg& leg, std::byte* out);
/// Returns whether the destination of the leg takes its data from another rank than this one.
inline bool is_served(const Request& request) {
  return request.part == Request::Part::leg && static_cast<const Leg&>(request).server >= 0;
}

}  // namespace canele::comm::multicast
