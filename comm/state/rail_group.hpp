// SPDX-License-Identifier: BSD-3-Clause
//
// Bundle: packet state of a peer with several rails, so that a rail may fail without loss.
//
// Used by link/sequencing.cpp; part of Peer. Called under the engine's lock, with one exception: the driver thread that
// sends a KeptPacket also reads its bytes.
//
// Packets are sequenced, kept and acknowledged, not messages. Everything above sees one reliable, ordered stream of
// packets, whichever rails they took.
//
//   sent:   [ 7 | 8 | 9 | 10 ]   oldest first, numbers without gaps; leaves at the peer's acknowledgement
//   again:  [ 8 | 10 ]           those of them that were on a rail that has died
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

namespace canele::comm {

struct DriverSlot;
struct Rail;

/// A sequenced packet that the peer has not acknowledged. Shared by the bundle and the rail that sends it.
struct KeptPacket {
  std::uint64_t number = 0;
  std::vector<std::byte> bytes;
  const Rail* rail = nullptr;  ///< the rail of its last transmission
};

/// Pieces of a user's buffer that a driver holds and may be writing to.
struct OpenLanding {
  const DriverSlot* slot;
  std::uint64_t key;
  bool asked_again = false;  ///< the sender has lost the rail: the transfer goes on once this is closed
};

struct Bundle {
  static constexpr std::size_t most_packets = 256, most_bytes = 4u << 20;  ///< kept unacknowledged, or early
  static constexpr std::uint64_t told_every = 16;                  ///< most packets between two acknowledgements
  static constexpr std::size_t told_every_bytes = most_bytes / 4;  ///< most bytes between two acknowledgements

  std::size_t max_packet = ~std::size_t{0};  ///< a kept packet must fit any rail.
  bool ack_due = false;                      ///< the peer may wait for an acknowledgement.
  bool numbers = false;                      ///< outgoing packets are sequenced.
  bool leaving = false;                      ///< each rail sends `closing` once it has nothing else to send.
  std::uint64_t next_out = 1;                ///< number of the next outgoing packet.
  std::uint64_t next_in = 1;                 ///< number of the next packet expected.
  std::uint64_t told = 0;                    ///< the highest number acknowledged to the peer.
  std::size_t untold_bytes = 0;              ///< received since that acknowledgement.
  std::size_t sent_bytes = 0;                ///< in `sent`.
  std::size_t early_bytes = 0;               ///< in `early`.
  std::size_t chunks_done = 0;               ///< bytes processed of packet `next_in`; memory ran out for the rest.
  std::deque<std::shared_ptr<KeptPacket>> sent, again;
  std::map<std::uint64_t, std::vector<std::byte>> early;
  std::vector<OpenLanding> landings;

  /// Drops all packets. The object stays, because the peer may have failed due to a packet that is still being read.
  /// The landings stay, too, because a driver is writing there.
  void drop() {
    sent.clear();
    again.clear();
    early.clear();
    sent_bytes = early_bytes = 0;
  }
  /// Marks all packets received so far as acknowledged. Returns the number to send to the peer.
  std::uint64_t tell() {
    told = next_in - 1;
    untold_bytes = 0;
    ack_due = false;
    return told;
  }
  bool window_open() const { return sent.size() < most_packets && sent_bytes < most_bytes; }
};

}  // namespace canele::comm
