// SPDX-License-Identifier: BSD-3-Clause
//
// Lookahead: fetches to the cache what the next chunks will look at, in the packet in hand and in those behind it.
//
// Who: DriverSlot, with each packet of a driver that shows what comes; else receive_path, with each packet of several
//     chunks. Threads: under the engine's lock.
// Surprise: a message that arrives among many posted receives misses the cache three times in a row: the table, the
//     receive, its buffer. The misses of several messages overlap, if each step is begun a few messages before the
//     next. It changes nothing, and trusts nothing: the peer may still write what is shown.
//
//   packets:  │ in hand: · · ▲ · · · │ · │ shown: · · · ▲ · · · │ · │ · │ shown last
//   chunks:                 done_  buffers_ … receives_ … tables_         hashes_: of the keys from done_ to tables_
//
// Rejected: distances in packets (one may have one chunk, the next sixty-four: each packet began with cold caches).
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

class Lookahead {
 public:
  using Packet = std::span<const std::byte>;
  static constexpr std::uint32_t most = 32;  ///< packets, the one in hand included; chunks

  /// A packet that comes after those that were shown before it. Of another peer than they: they are forgotten. It stays
  /// where it is until it is in hand.
  void show(const Peer& peer, Packet packet);
  /// It is in hand now, and its first chunk comes. One that was not shown is looked at alone.
  void begin(const Matcher& matcher, const Peer& peer, Packet packet);
  /// The next of its chunks comes.
  void step(const Matcher& matcher);
  /// It is out of hand.
  void end();
  bool has_one() const { return has_one_; }
  /// What is shown may be no memory any more, but for the packet in hand.
  void forget();
  /// Chunks behind the one in hand that something was sent for, or that nothing can be sent for.
  std::uint32_t known() const { return static_cast<std::int32_t>(tables_ - done_) > 0 ? tables_ - done_ : 0; }

 private:
  void start_anew(const Peer& peer);
  void add(Packet packet);
  bool open();
  std::uint64_t foresee_table(const Matcher& matcher);

  const Peer* peer_ = nullptr;
  bool has_one_ = false;
  std::uint32_t first_ = 0, last_ = 0;                     ///< packets: the oldest shown, and behind the last
  std::uint32_t next_ = 0;                                 ///< packet to be opened next
  Packet rest_;                                            ///< of the packet opened last
  std::uint32_t done_ = 0;                                 ///< chunks, the one in hand included
  std::uint32_t tables_ = 0, receives_ = 0, buffers_ = 0;  ///< chunks up to which each has been sent for
  std::array<Packet, most> shown_;                         ///< by number, modulo their size, as the other two
  std::array<std::uint32_t, most> starts_ = {};            ///< first chunk of a packet that was opened
  std::array<std::uint64_t, most> hashes_ = {};            ///< by chunk; 0: nothing is sent for
};

}  // namespace canele::comm
