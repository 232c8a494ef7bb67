// SPDX-License-Identifier: BSD-3-Clause
//
// Prefetching for chunks to come. See the picture in packet_prefetch.hpp.
//
// Chunks are counted as the prefetch finds them, and the count is corrected with each packet. So changes that the
// peer makes meanwhile can make hints useless, never wrong. Each step looks up its node anew, because the node's
// request may be gone.
#include "comm/state/packet_prefetch.hpp"

#include "comm/matching/prefetch.hpp"
#include "comm/state/peer.hpp"
#include "comm/state/request.hpp"
#include "comm/state/session.hpp"
#include "comm/wire/wire.hpp"

namespace canele::comm {
namespace {

constexpr std::uint32_t table_ahead = 24, receive_ahead = 16, buffer_ahead = 8;  // chunks
static_assert(table_ahead < PacketPrefetch::most);

bool before(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b) < 0; }

void prefetch_receive(const MatchNode* node) {
  if (node == nullptr) return;
  constexpr std::size_t before = sizeof(Outcome), all = before + sizeof(PostedNode);
  const auto first = reinterpret_cast<std::uintptr_t>(node) - before;
  for (std::size_t at = 0; at < all; at += 64) prefetch_to_write(reinterpret_cast<const void*>(first + at));
}

void prefetch_buffer(const MatchNode* node) {
  if (node != nullptr && node->posted) prefetch_to_write(request_of(static_cast<const PostedNode&>(*node)).data.base);
}

}  // namespace

void PacketPrefetch::start_anew(const Peer& peer) {
  peer_ = &peer;
  first_ = last_ = next_ = 0;
  rest_ = {};
  done_ = tables_ = receives_ = buffers_ = 0;
}

void PacketPrefetch::add(Packet packet) {
  assert(last_ - first_ < most);
  shown_[last_++ % most] = packet;
}

void PacketPrefetch::show(const Peer& peer, Packet packet) {
  assert(!has_one_);
  if (peer_ != &peer || last_ - first_ == most) start_anew(peer);
  add(packet);
}

void PacketPrefetch::begin(const Matcher& matcher, const Peer& peer, Packet packet) {
  assert(!has_one_);
  const Packet front = first_ != last_ ? shown_[first_ % most] : Packet{};
  if (peer_ != &peer || front.data() != packet.data() || front.size() != packet.size()) {
    start_anew(peer);
    add(packet);
  }
  has_one_ = true;
  done_ = next_ == first_ ? tables_ : starts_[first_ % most];
  step(matcher);
}

void PacketPrefetch::step(const Matcher& matcher) {
  assert(has_one_);
  ++done_;
  for (; before(tables_, done_ + table_ahead) && open(); ++tables_) hashes_[tables_ % most] = prefetch_table(matcher);
  const auto node = [&](std::uint32_t chunk) {
    const std::uint64_t hash = hashes_[chunk % most];
    return hash != 0 ? matcher.guess(hash) : nullptr;
  };
  const auto until = [this](std::uint32_t ahead) { return before(tables_, done_ + ahead) ? tables_ : done_ + ahead; };
  for (const std::uint32_t end = until(receive_ahead); before(receives_, end); ++receives_) {
    prefetch_receive(node(receives_));
  }
  for (const std::uint32_t end = until(buffer_ahead); before(buffers_, end); ++buffers_)
    prefetch_buffer(node(buffers_));
}

void PacketPrefetch::end() {
  assert(has_one_);
  has_one_ = false;
  ++first_;
  if (!before(first_, next_)) {  // nothing is known of the chunks behind the packet that ends
    next_ = first_;
    rest_ = {};
    tables_ = done_;
  }
  if (before(receives_, done_)) receives_ = done_;
  if (before(buffers_, done_)) buffers_ = done_;
}

void PacketPrefetch::forget() {
  const std::uint32_t kept = first_ + (has_one_ ? 1 : 0);
  last_ = kept;
  if (before(kept, next_) || !has_one_) {
    next_ = kept;
    rest_ = {};
  }
}

/// Returns whether there is another chunk to prefetch for; opens the next packet if necessary.
bool PacketPrefetch::open() {
  if (!rest_.empty()) return true;
  if (next_ == last_) return false;
  starts_[next_ % most] = tables_;
  rest_ = shown_[next_++ % most];
  return !rest_.empty();
}

/// Returns the hash of what the next chunk matches, or 0 if the chunk is no eager message or is malformed.
std::uint64_t PacketPrefetch::prefetch_table(const Matcher& matcher) {
  wire::Chunk chunk;
  if (!wire::take_chunk(rest_, chunk).is_ok()) {
    rest_ = {};
    return 0;
  }
  const bool eager = chunk.head.type == wire::Type::eager;
  const Session* session = eager ? peer_->names.look_up(chunk.head.session) : nullptr;
  return session != nullptr ? matcher.prefetch_hint(session->match, chunk.head.tag, peer_->rank) : 0;
}

}  // namespace canele::comm
