// SPDX-License-Identifier: BSD-3-Clause
//
// A packet is parsed, and each of its chunks goes to the floor that handles it.
#include "comm/link/parse_chunks.hpp"

#include <utility>

#include "comm/wire/wire.hpp"

namespace canele::comm::link {
namespace {

/// Prefetches for a packet of several chunks, if that is worthwhile. Where the driver shows what comes, DriverInstance
/// has begun before.
class PacketPrefetchScope {
 public:
  PacketPrefetchScope(Context& context, const Peer& peer, std::span<const std::byte> packet)
      : context_(context), begins_(!context.packet_prefetch.has_one() && context.matcher.is_large()) {
    if (begins_) context.packet_prefetch.begin(context.matcher, peer, packet);
  }
  ~PacketPrefetchScope() {
    if (begins_) context_.packet_prefetch.end();
  }
  PacketPrefetchScope(const PacketPrefetchScope&) = delete;
  PacketPrefetchScope& operator=(const PacketPrefetchScope&) = delete;
  void step() const CANELE_UNDER_LOCK {
    if (context_.packet_prefetch.has_one()) context_.packet_prefetch.step(context_.matcher);
  }

 private:
  Context& context_;
  bool begins_;
};

}  // namespace

Verdict parse_chunks(Context& context, Peer& peer, std::span<const std::byte> bytes, std::size_t* done) {
  const std::size_t size = bytes.size(), before = std::exchange(*done, 0);
  if (before >= size) return Verdict::violation("a packet is empty");
  bytes = bytes.subspan(before);
  const PacketPrefetchScope prefetch(context, peer, bytes);
  while (!bytes.empty() && !peer.disconnected()) {
    wire::Chunk chunk;
    const std::size_t left = bytes.size();
    if (const Verdict v = wire::take_chunk(bytes, chunk); !v.is_ok()) return v;
    if (const Verdict v = context.on_chunk(peer, chunk); !v.is_ok()) {
      if (v.is_retry()) *done = size - left;
      return v;
    }
    if (!bytes.empty()) prefetch.step();
  }
  return Verdict::ok();
}

}  // namespace canele::comm::link
