// SPDX-License-Identifier: BSD-3-Clause
//
// Bundle: what a peer with several rails keeps, so that a rail may die without a loss.
//
// Who: protocol/bundle.cpp; part of Peer.
// Threads: under the engine's lock. A KeptPacket's bytes are also read by the driver that is sending them.
// Surprise: it is packets that are numbered, kept and acknowledged, not messages: everything above sees one reliable,
//     ordered stream of packets, whichever rails they took.
//
//   sent:   [ 7 | 8 | 9 | 10 ]   oldest first, numbers without gaps; leaves at the peer's acknowledgement
//   again:  [ 8 | 10 ]           those of them that were on a rail that has died
//   early:  { 13, 14 }           arrived before number 12, which is on another rail
//
// Rejected: numbering messages (control chunks would need a scheme of their own); acknowledging each packet (a packet
//     back for each forth).
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

/// A numbered packet that the peer has not acknowledged. Shared by the bundle and the rail that is sending it.
struct KeptPacket {
  std::uint64_t number = 0;
  std::vector<std::byte> bytes;
  const Rail* rail = nullptr;  ///< which it took last
};

/// A driver holds the pieces of a user's buffer and may be writing to it.
struct OpenLanding {
  const DriverSlot* slot;
  std::uint64_t key;
  bool asked_again = false;  ///< its sender has lost the rail: the transfer goes on once this is closed
};

struct Bundle {
  static constexpr std::size_t most_packets = 256, most_bytes = 4u << 20;  ///< kept unacknowledged; early ones likewise
  static constexpr std::uint64_t told_every = 16;                  ///< packets between two acknowledgements, at most,
  static constexpr std::size_t told_every_bytes = most_bytes / 4;  ///< and bytes

  std::size_t max_packet = ~std::size_t{0};  ///< a packet that is kept must fit any rail
  bool ack_due = false;                      ///< the peer may wait to hear how far we are
  bool numbers = false;                      ///< what we send is numbered
  bool leaving = false;                      ///< each rail is to carry `closing` when there is nothing else
  std::uint64_t next_out = 1;                ///< number of the next packet
  std::uint64_t next_in = 1;                 ///< the number that comes next
  std::uint64_t told = 0;                    ///< the highest number that we have acknowledged
  std::size_t untold_bytes = 0;              ///< that have come since then
  std::size_t sent_bytes = 0;                ///< in `sent`
  std::size_t early_bytes = 0;               ///< in `early`
  std::size_t chunks_done = 0;               ///< of packet `next_in`, for whose rest there was no memory
  std::deque<std::shared_ptr<KeptPacket>> sent, again;
  std::map<std::uint64_t, std::vector<std::byte>> early;
  std::vector<OpenLanding> landings;

  /// Lets go of all packets. The object stays: the peer may have died of a packet that is being read. So do landings: a
  /// driver is writing there.
  void drop() {
    sent.clear();
    again.clear();
    early.clear();
    sent_bytes = early_bytes = 0;
  }
  /// The peer hears in a packet how far we are. Returns that number.
  std::uint64_t tell() {
    told = next_in - 1;
    untold_bytes = 0;
    ack_due = false;
    return told;
  }
  bool window_open() const { return sent.size() < most_packets && sent_bytes < most_bytes; }
};

}  // namespace canele::comm
