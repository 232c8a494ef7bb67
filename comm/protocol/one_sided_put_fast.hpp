// SPDX-License-Identifier: BSD-3-Clause
//
// Fast path of a short put or notification at its origin: does what one_sided_origin.hpp does for it at once, where
// nothing stands in the way.
//
// Any thread may call it under the engine's lock; post/put.hpp does. If try_put_fast() or notify_fast() returns false,
// nothing was sent, and the caller posts the operation normally.
//
// Such an operation has no completion, so it needs no request: it is over for the origin once it has left. Its lane
// counts it until the target is known to have executed it, as any other operation.
//
// It is a header for the reason that send_fast.hpp is one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "comm/link/queue.hpp"
#include "comm/state/context.hpp"
#include "comm/state/one_sided.hpp"
#include "comm/wire/wire.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::one_sided {

/// A put of one piece of memory that is offered to the fast path. The key allows it.
struct ShortPut {
  const RemoteKey& key;
  Lane& lane;
  std::uint64_t offset;
  const void* bytes;
  std::size_t length;
};

/// A notification that is offered to the fast path.
struct ShortNotification {
  int rank;
  Lane& lane;
  const RemoteKey* key;  ///< of a put whose data goes along; nullptr: there is no data, or it is there already
  std::uint64_t offset;
  const void* bytes;
  std::size_t length;
  wire::Notification fields;
};

inline Stream* find_clear_stream(const Peer& peer, std::uint16_t lane);
[[gnu::always_inline]] static inline bool send_put(Peer& peer, const ShortPut& put) CANELE_UNDER_LOCK;
[[gnu::always_inline]] static inline void account_put(Context& context, Peer& peer, Stream& stream, Lane& lane,
                                                      bool writes) CANELE_UNDER_LOCK;

/// Sends a short put to a peer of an idle memory driver, with nothing queued before it. The packet that any strategy
/// would plan now holds this put only. Returns false if the put has to take the normal path.
[[gnu::always_inline]] static inline bool try_put_fast(Context& context, const ShortPut& put) CANELE_UNDER_LOCK {
  Peer* const peer = context.peers[put.key.rank];
  if (peer == nullptr || put.key.index == 0) [[unlikely]]  // the target does not know the memory by an index yet
    return false;
  Stream* const stream = find_clear_stream(*peer, put.lane.number);
  if (stream == nullptr || !link::can_send_fast(*peer, wire::chunk_size(sizeof(std::uint32_t) + put.length)))
      [[unlikely]]
    return false;
  if (!send_put(*peer, put)) [[unlikely]]
    return false;
  CANELE_COVER(one_sided_put_fast);
  account_put(context, *peer, *stream, put.lane, true);
  link::doorbell(context, *peer->rail);
  return true;
}

/// Returns the operations of a lane if the next put may leave before the peer is flushed: no operation waits there, and
/// none holds back what writes. Else nullptr.
inline Stream* find_clear_stream(const Peer& peer, std::uint16_t lane) {
  PeerAccess* const access = peer.one_sided.get();
  if (access == nullptr || lane >= access->streams.size()) return nullptr;
  Stream& stream = access->streams[lane];
  const bool is_clear = stream.waiting.front() == nullptr && stream.large_put == nullptr && stream.gets == 0;
  return is_clear ? &stream : nullptr;
}

/// The first bytes of the data go with the head, which then ends with a whole word. The driver copies words. A word
/// that it reads across two that were just written would have to wait for both.
struct FirstBytes {
  std::uint32_t word = 0;
  std::size_t count = sizeof word;

  [[gnu::always_inline]] FirstBytes(const void* bytes, std::size_t length) {
    if (length >= sizeof word) [[likely]] {
      std::memcpy(&word, bytes, sizeof word);
    } else {
      count = length;
      if (count != 0) std::memcpy(&word, bytes, count);
    }
  }
};

/// Gives the packet to the driver: `size` bytes of the words, then the rest of the data. Returns false, with nothing
/// sent, if the driver is full.
template <std::size_t N>
[[gnu::always_inline]] static inline bool send_words(Peer& peer, const std::array<std::uint64_t, N>& words,
                                                     std::size_t size, const void* rest, std::size_t length) {
  Rail& rail = *peer.rail;
  if (rail.instance->driver->send_inline(peer.rank, words.data(), size, rest, length) == drivers::Status::ok) [[likely]]
    return true;
  CANELE_COVER(one_sided_put_found_full);
  transition(rail, Transmit::full);
  return false;
}

/// Sends the packet of a put. Returns false, with nothing sent, if the driver is full.
[[gnu::always_inline]] static inline bool send_put(Peer& peer, const ShortPut& put) {
  constexpr std::uint32_t flags = 0;  // no acknowledgement: a flush asks for all
  const auto size = static_cast<std::uint8_t>(sizeof flags + put.length);
  const auto head = wire::words_of({put.offset, put.key.index, put.lane.number, wire::Type::put, size});
  const FirstBytes first(put.bytes, put.length);
  const std::array<std::uint64_t, 3> words = {head[0], head[1], flags | std::uint64_t{first.word} << 32};
  return send_words(peer, words, sizeof head + sizeof flags + first.count,
                    static_cast<const std::byte*>(put.bytes) + first.count, put.length - first.count);
}

/// Lets a lane count the operations of a stream up to `number`. A stream that the lane counts already goes on to be
/// counted until its last operation is executed, so most puts need no atomic operation.
inline void count_up_to(Unconfirmed& unconfirmed, std::atomic<std::uint64_t>& in_lane, std::uint64_t number) {
  unconfirmed.last = number;
  if (unconfirmed.count != 0) return;
  unconfirmed.count = 1;
  in_lane.fetch_add(1, std::memory_order_relaxed);  // as in api/one_sided_post.cpp
}

/// Returns the operations of the lane if the notification may leave before the peer is flushed, else nullptr.
inline Stream* may_notify_fast(const Context& context, const ShortNotification& one) CANELE_UNDER_LOCK {
  const Peer* const peer = context.peers[one.rank];
  if (peer == nullptr || (one.key != nullptr && one.key->index == 0)) [[unlikely]]
    return nullptr;
  Stream* const stream = find_clear_stream(*peer, one.lane.number);
  const std::size_t carried = one.key != nullptr ? one.length : 0;
  if (stream == nullptr || !peer->one_sided->may_notify() ||
      !link::can_send_fast(*peer, wire::chunk_size(sizeof(std::uint32_t) + sizeof one.fields + carried))) [[unlikely]]
    return nullptr;
  return stream;
}

/// Sends the packet of a notification, with the data that goes along. Returns false, with nothing sent, if the driver
/// is full.
[[gnu::always_inline]] static inline bool send_notification(Peer& peer, const ShortNotification& one) {
  constexpr std::uint64_t flags = wire::access_notifies;
  const bool puts = one.key != nullptr;
  const std::size_t carried = puts ? one.length : 0;
  const auto size = static_cast<std::uint8_t>(sizeof(std::uint32_t) + sizeof one.fields + carried);
  const auto head = wire::words_of({puts ? one.offset : 0, puts ? one.key->index : 0, one.lane.number,
                                    puts ? wire::Type::put : wire::Type::notify, size});
  const FirstBytes first(one.bytes, carried);
  const wire::Notification& fields = one.fields;
  constexpr unsigned half = 32;
  const std::array<std::uint64_t, 7> words = {head[0],
                                              head[1],
                                              flags | fields.immediate << half,
                                              fields.immediate >> half | fields.length << half,
                                              fields.length >> half | fields.offset << half,
                                              fields.offset >> half | std::uint64_t{fields.slot} << half,
                                              std::uint64_t{first.word} << half};
  return send_words(peer, words, sizeof head + sizeof(std::uint32_t) + sizeof fields + first.count,
                    static_cast<const std::byte*>(one.bytes) + first.count, carried - first.count);
}

/// Sends the notification that may_notify_fast() allows. Returns false, with nothing sent, if the driver is full.
[[gnu::always_inline]] static inline bool notify_fast(Context& context, Stream& stream,
                                                      const ShortNotification& one) CANELE_UNDER_LOCK {
  Peer& peer = *context.peers[one.rank];
  if (!send_notification(peer, one)) [[unlikely]]
    return false;
  CANELE_COVER(one_sided_notified_fast);
  account_put(context, peer, stream, one.lane, one.key != nullptr);
  ++peer.one_sided->notifications;
  link::doorbell(context, *peer.rail);
  return true;
}

/// Accounts for a put, or a notification, that has left. writes: its data has gone along.
[[gnu::always_inline]] static inline void account_put(Context& context, Peer& peer, Stream& stream, Lane& lane,
                                                      bool writes) {
  const std::uint64_t number = ++stream.begun;
  if (writes) count_up_to(stream.effects, lane.effects, number);
  count_up_to(stream.all, lane.all, number);
  context.counters.add(Counter::accesses_sent);
  peer.counters.add(Counter::packets_sent);
}

}  // namespace canele::comm::one_sided
