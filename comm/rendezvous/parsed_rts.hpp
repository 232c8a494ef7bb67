// SPDX-License-Identifier: BSD-3-Clause
//
// A request to send (RTS) that has come, after its lengths have been checked.
//
// receive_rts makes it, and gives it to receiver_initiated.
//
// Any thread may use it, under the engine's lock.
#pragma once

#include <cstddef>
#include <span>

#include "comm/wire/wire.hpp"

namespace canele::comm::rendezvous {

class Arrival;

/// The parts of a request to send, or of a blocked envelope. The spans lie in the packet.
struct ParsedRts {
  wire::Head head;
  wire::Rts rts;
  std::span<const std::byte> header, rkey;  ///< `rkey` is empty if the peer's memory cannot be read
  Arrival* arrival = nullptr;               ///< of a multicast
};

}  // namespace canele::comm::rendezvous
