// SPDX-License-Identifier: BSD-3-Clause
//
// RailGroup: packet state of a peer with several rails, so that a rail may fail without loss.
//
// Used by link/sequencing.cpp; part of Peer. Called under the engine's lock, with one exception: the driver thread that
// sends an UnackedPacket also reads its bytes.
//
// Packets are sequenced, kept and acknowledged, not messages. Everything above sees one reliable, ordered stream of
// packets, whichever rails they took.
//
//   sent:   [ 7 | 8 | 9 | 10 ]   oldest first, numbers without gaps; removed at the peer's acknowledgement
//   to_resend:  [ 8 | 10 ]       those of them that were on a rail that has failed
//   early:  { 13, 14 }           arrived before number 12, which is on another rail
//
// Rejected: numbering messages (control chunks would need a scheme of their own).
// Rejected: acknowledging each packet (one packet back for each packet forth).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "comm/state/early_ranges.hpp"
#include "comm/wire/handle.hpp"
#include "strategies/strategy.hpp"

namespace canele::comm {

struct DriverInstance;
struct Rail;

/// A sequenced packet that the peer has not acknowledged. Shared by the group and the rail that sends it.
struct UnackedPacket {
  std::uint64_t number = 0;
  std::vector<std::byte> bytes;
  const Rail* rail = nullptr;  ///< the rail of its last transmission
};

/// Pieces of a user's buffer that a driver holds and may be writing to.
struct OpenDestination {
  const DriverInstance* instance;
  Handle transfer_id;
  std::uint64_t begin = 0, end = 0;  ///< bytes of the message; no other destination has any of them
  bool asked_again = false;          ///< the sender has lost the rail: the transfer goes on once this is closed
  bool sender_failed = false;        ///< the sender could not read the rest: the transfer ends once this is closed
};

struct RailGroup {
  static constexpr std::size_t most_packets = 256, most_bytes = 4u << 20;  ///< kept unacknowledged, or early
  static constexpr std::uint64_t ack_every = 16;                  ///< most packets between two acknowledgements
  static constexpr std::size_t ack_every_bytes = most_bytes / 4;  ///< most bytes between two acknowledgements

  std::size_t max_packet = ~std::size_t{0};  ///< a kept packet must fit any rail.
  bool ack_due = false;                      ///< the peer may wait for an acknowledgement.
  bool sequenced = false;                    ///< outgoing packets are sequenced.
  bool closing = false;                      ///< each rail sends `rail_close` once it has nothing else to send.
  std::uint64_t next_out = 1;                ///< number of the next outgoing packet.
  std::uint64_t next_in = 1;                 ///< number of the next packet expected.
  std::uint64_t acknowledged = 0;            ///< the highest number acknowledged to the peer.
  std::size_t bytes_to_ack = 0;              ///< received since that acknowledgement.
  std::size_t sent_bytes = 0;                ///< in `sent`.
  std::size_t early_bytes = 0;               ///< in `early`.
  std::size_t chunks_done = 0;               ///< bytes processed of packet `next_in`; memory ran out for the rest.
  std::deque<std::shared_ptr<UnackedPacket>> sent, to_resend;
  std::map<std::uint64_t, std::vector<std::byte>> early;
  std::vector<OpenDestination> destinations;
  std::map<std::uint64_t, EarlyRanges> ranges;  ///< of transfers that several rails bring, by their names
  std::vector<strategies::RailLoad> loads;      ///< for link/pacing.cpp

  /// Drops all packets. The object stays, because the peer may have failed due to a packet that is still being read.
  /// The destinations stay, too, because a driver is writing there.
  void drop() {
    sent.clear();
    to_resend.clear();
    early.clear();
    ranges.clear();
    sent_bytes = early_bytes = 0;
  }
  /// Marks all packets received so far as acknowledged. Returns the number to send to the peer.
  std::uint64_t acknowledge() {
    acknowledged = next_in - 1;
    bytes_to_ack = 0;
    ack_due = false;
    return acknowledged;
  }
  /// Marks what drivers write of a transfer now. Returns whether any does.
  bool mark_open(Handle transfer_id, bool OpenDestination::*mark) {
    bool open = false;
    for (OpenDestination& one : destinations) {
      if (one.transfer_id == transfer_id) open = one.*mark = true;
    }
    return open;
  }
  bool below_unacked_limit() const { return sent.size() < most_packets && sent_bytes < most_bytes; }
};

}  // namespace canele::comm
