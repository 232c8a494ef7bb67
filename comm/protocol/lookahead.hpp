// SPDX-License-Identifier: BSD-3-Clause
//
// Lookahead: fetches to the cache what the chunks further on in a packet will look at.
//
// Who: receive_path, with each packet of several chunks. Threads: under the engine's lock.
// Surprise: a message that arrives among many posted receives misses the cache three times in a row: the table, the
//     receive, its buffer. Of several messages in a packet the misses overlap, if each step is begun a few messages
//     before the next. Where the table is small nothing is done. It changes nothing, and trusts nothing.
//
//   packet: │ in hand │ · │ · │ · │ buffer │ · │ · │ · │ receive │ · │ · │ · │ table │ …
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/core/engine.hpp"
#include "comm/core/request.hpp"
#include "comm/matching/prefetch.hpp"
#include "comm/packet/wire.hpp"

namespace canele::comm::receive_path {

class Lookahead {
 public:
  Lookahead(const Engine& engine, const Peer& peer, std::span<const std::byte> packet)
      : matcher_(engine.matcher), peer_(peer), on_(matcher_.is_large()) {
    if (on_) at_.fill(packet);
    for (int i = 0; on_ && i < 12; ++i) {
      table();
      if (i >= 4) receive(guess(at_[1]));
      if (i >= 8) buffer(guess(at_[2]));
    }
  }
  /// Before each chunk.
  void step() {
    if (!on_) return;
    table();
    receive(guess(at_[1]));
    buffer(guess(at_[2]));
  }

  /// The same for the messages of a packet that is to come; see DriverEvents::foresee().
  static void foresee(const Engine& engine, const Peer& peer, std::span<const std::byte> packet, int packets_ahead) {
    while (!packet.empty()) {
      std::uint64_t tag = 0;
      const Session* session = next(peer, packet, tag);
      if (session == nullptr) continue;
      if (packets_ahead == drivers::DriverEvents::look_ahead[0]) {
        engine.matcher.foresee(session->match, tag, peer.rank);
      } else {
        const MatchNode* node = engine.matcher.guess(session->match, tag, peer.rank);
        packets_ahead == drivers::DriverEvents::look_ahead[1] ? receive(node) : buffer(node);
      }
    }
  }

 private:
  /// Which key the next chunk of a cursor looks for; nullptr if it is no eager message, or makes no sense.
  static const Session* next(const Peer& peer, std::span<const std::byte>& at, std::uint64_t& tag) {
    wire::Chunk chunk;
    if (at.empty() || wire::take_chunk(at, chunk) != nullptr) {
      at = {};
      return nullptr;
    }
    tag = chunk.head.tag;
    const bool eager = chunk.head.type == wire::Type::eager && chunk.head.session < peer.sessions_in.size();
    return eager ? peer.sessions_in[chunk.head.session] : nullptr;
  }
  const MatchNode* guess(std::span<const std::byte>& at) const {
    std::uint64_t tag = 0;
    const Session* session = next(peer_, at, tag);
    return session != nullptr ? matcher_.guess(session->match, tag, peer_.rank) : nullptr;
  }
  void table() {
    std::uint64_t tag = 0;
    if (const Session* session = next(peer_, at_[0], tag)) matcher_.foresee(session->match, tag, peer_.rank);
  }
  static void receive(const MatchNode* node) {
    if (node == nullptr) return;
    constexpr std::size_t before = sizeof(Outcome), all = before + sizeof(PostedNode);
    const auto first = reinterpret_cast<std::uintptr_t>(node) - before;
    for (std::size_t at = 0; at < all; at += 64) prefetch_to_write(reinterpret_cast<const void*>(first + at));
  }
  static void buffer(const MatchNode* node) {
    if (node != nullptr && node->posted) prefetch_to_write(request_of(static_cast<const PostedNode&>(*node)).data.base);
  }

  const Matcher& matcher_;
  const Peer& peer_;
  bool on_;
  std::array<std::span<const std::byte>, 3> at_;  ///< a cursor for each
};

}  // namespace canele::comm::receive_path
