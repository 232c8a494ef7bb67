// SPDX-License-Identifier: BSD-3-Clause
//
// Answers with bytes, at the target: the memory that a get reads, or the former elements of an accumulate.
//
// A short answer leaves at once if it can. Else a request of the pool sends it piece by piece, with the other
// operations of its lane. Called by the thread that holds the engine's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/state/context.hpp"
#include "comm/state/one_sided.hpp"
#include "comm/wire/handle.hpp"

namespace canele::comm::one_sided {

/// To which operation of the peer an answer belongs.
struct ReplyName {
  std::uint16_t lane;
  Handle operation;
};

/// Returns whether the peer has as many answers under way as it may. For the origin an answer is over when its bytes
/// have come. This rank may learn of that later: by an event of the driver, or by the task that ends a message.
inline bool has_most_replies(const Context& context, const Peer& peer) CANELE_UNDER_LOCK {
  const std::uint32_t serving = peer.one_sided->serving;
  return serving >= most_served && serving - context.one_sided.transfers.answers_sent(peer.rank) >= most_served;
}

/// Sends memory of a region, which is in use until the bytes have left.
Verdict reply_from(Context& context, Peer& peer, const ReplyName& name, Region& region,
                   const StridedMemory& memory) CANELE_UNDER_LOCK;

/// A copy that is to be sent.
struct ReplyCopy {
  PooledRequest* request = nullptr;  ///< nullptr: there is no memory
  std::span<std::byte> bytes;
};
/// Takes memory for an answer of `length` bytes.
ReplyCopy reserve_reply(Context& context, std::size_t length) CANELE_UNDER_LOCK;
/// Sends the bytes, and frees them when they have left.
void reply_with(Context& context, Peer& peer, const ReplyName& name, const ReplyCopy& copy) CANELE_UNDER_LOCK;

/// Writes the next piece of an answer at `out`. Returns its end.
std::byte* write_reply(Context& context, Request& reply, std::byte* out) CANELE_UNDER_LOCK;
/// The piece has left.
void on_reply_written(Context& context, Request& reply) CANELE_UNDER_LOCK;
/// Ends an answer that has left, or whose peer is disconnected.
void drop_reply(Context& context, Request& reply) CANELE_UNDER_LOCK;

}  // namespace canele::comm::one_sided
