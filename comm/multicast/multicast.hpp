// SPDX-License-Identifier: BSD-3-Clause
//
// The root's half of a multicast: one send to each destination, and who serves whom.
//
// Who: api/ submits; the ends of its legs come back here. Threads: under the engine's lock.
// Surprise: a multicast that is sent flat is nothing but its sends. Only where somebody serves somebody does an
//     envelope carry a route, and the data wait to be asked for.
#pragma once

#include <span>

#include "comm/core/engine.hpp"

namespace canele::comm::multicast {

/// The submitted Multicast begins; it deletes itself in the end.
void begin(Engine& engine, CallOp& op);

/// In: a multicast that has not begun, by the calling thread. Out: where several of its destinations read memory that
/// the driver fills once for all, it lies there. Not under the lock: it may take as long as a copy.
void shelve(Engine& engine, Multicast& whole, const canele_data_t& data);

/// Bytes that the route of a leg takes in its envelope, and writes them.
std::size_t route_size(const Leg& leg);
std::byte* write_route(const Engine& engine, const Leg& leg, std::byte* out);
/// Is the leg's data taken from somebody else?
inline bool is_served(const Request& request) {
  return request.part == Request::Part::leg && static_cast<const Leg&>(request).server >= 0;
}

}  // namespace canele::comm::multicast
