// SPDX-License-Identifier: BSD-3-Clause
//
// A request to send (RTS) that has come, after its lengths have been checked.
//
// receive_rts makes it.
//
// Any thread may use it, under the engine's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/wire/wire.hpp"

namespace canele::comm::rendezvous {

class Arrival;

/// What a request to send says of its sender's memory.
struct RemoteSource {
  Handle handle;                    ///< of the send
  std::span<const std::byte> rkey;  ///< empty: the memory cannot be read
  std::uint8_t rkey_driver;         ///< tag of the driver that made the rkey; see DriverInstance::driver_tag()
  bool may_stream;                  ///< a stream serves as well: the receiver takes what is quicker
};

/// The parts of a request to send, or of a blocked envelope. The spans lie in the packet.
struct ParsedRts {
  wire::Head head;
  wire::Rts rts;
  std::span<const std::byte> header, rkey;  ///< `rkey`: see RemoteSource
  Arrival* arrival = nullptr;               ///< of a multicast

  /// Returns whether the header is the whole message.
  bool has_all_data() const { return rts.header == rts.length && rts.length != 0; }
  RemoteSource source() const { return {rts.handle, rkey, rts.rkey_driver, rts.may_stream != 0}; }
};

}  // namespace canele::comm::rendezvous
