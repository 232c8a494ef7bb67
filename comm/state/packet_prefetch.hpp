// SPDX-License-Identifier: BSD-3-Clause
//
// PacketPrefetch: prefetches what the next chunks will read, both in the current packet and in the packets behind it.
//
// DriverInstance uses it for each packet of a driver that shows what comes next. For other drivers, protocol/receive
// uses it for each packet of several chunks. Called by the thread that holds the engine's lock.
//
// A message that arrives among many posted receives misses the cache three times in a row: for the table, the receive,
// and its buffer. The misses of several messages overlap if each step begins a few messages before the next step.
// Prefetching changes no state and trusts no input: the peer may still be writing what is shown.
//
//   packets:  │ in hand: · · ▲ · · · │ · │ shown: · · · ▲ · · · │ · │ · │ shown last
//   chunks:                 done_  buffers_ … receives_ … tables_         hashes_: of the keys from done_ to tables_
//
// Rejected: distances in packets. One packet may have one chunk and the next sixty-four, so each packet began with cold
// caches.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/matching/matcher.hpp"

namespace canele::comm {

struct Peer;
class Session;

class PacketPrefetch {
 public:
  using Packet = std::span<const std::byte>;
  static constexpr std::uint32_t most = 32;  ///< packets, including the one in hand; also chunks

  /// Announces a packet that comes after the packets shown before it. If it is from another peer than those, they are
  /// forgotten. The packet stays where it is until it is in hand.
  void show(const Peer& peer, Packet packet);
  /// Takes the packet in hand; its first chunk is processed next. A packet that was not shown is prefetched alone.
  void begin(const Matcher& matcher, const Peer& peer, Packet packet);
  /// Advances to the next chunk of the packet in hand.
  void step(const Matcher& matcher);
  /// Ends the packet in hand.
  void end();
  bool has_one() const { return has_one_; }
  /// Forgets all shown packets but the one in hand: their memory may be gone.
  void forget();
  /// Returns how many chunks behind the current one were prefetched, or cannot be prefetched.
  std::uint32_t known() const { return static_cast<std::int32_t>(tables_ - done_) > 0 ? tables_ - done_ : 0; }

 private:
  void start_anew(const Peer& peer);
  void add(Packet packet);
  bool open();
  std::uint64_t prefetch_table(const Matcher& matcher);

  const Peer* peer_ = nullptr;
  bool has_one_ = false;
  std::uint32_t first_ = 0, last_ = 0;                     ///< packets: the oldest shown, and one past the last.
  std::uint32_t next_ = 0;                                 ///< packet to be opened next.
  Packet rest_;                                            ///< rest of the packet opened last.
  std::uint32_t done_ = 0;                                 ///< chunks, including the current one.
  std::uint32_t tables_ = 0, receives_ = 0, buffers_ = 0;  ///< chunks up to which each step was prefetched.
  std::array<Packet, most> shown_;                         ///< by number, modulo the array size, like the other two.
  std::array<std::uint32_t, most> starts_ = {};            ///< first chunk of an opened packet.
  std::array<std::uint64_t, most> hashes_ = {};            ///< by chunk; 0: nothing is prefetched for it.
};

}  // namespace canele::comm
