// SPDX-License-Identifier: BSD-3-Clause
//
// Flow control, the receiver's half: grants credit as messages are matched, and asks for what senders withhold when a
// receive waits for it. See state/credit.hpp for the accounts, and credit_sender.hpp for the other half.
//
//   envelope ─▶ charge ─┬─ matched: nothing more
//                       └─ kept: stored ─▶ … ─▶ released ─▶ refill ─▶ credit ─▶ (sender) on_credit
//   receive waits ─▶ posted ─▶ resume ─▶ (sender) offers ─▶ receive matches ─▶ offered ─▶ answer
//   probe misses ─▶ missed ───┘                                                       (sender) resumed ─▶ the next
//
// Any thread may call these functions, under the engine's lock.
//
// A message that meets its receive costs one addition and one comparison. Everything else is done when half of what the
// sender may send is used up.
#pragma once

#include <cassert>
#include <cstdint>

#include "comm/state/context.hpp"
#include "comm/wire/wire.hpp"

namespace canele::comm::flow_in {

/// Notes a peer that has used up half of its window. Credit is granted before the lock is left, when it is known what
/// became of the message. Returns nullptr; or how the sender exceeds what it was granted.
const char* look(Context& context, Peer& peer);
/// Grants what is due. Called when peers are pumped.
void refill_all(Context& context);

/// Charges an envelope that has come. Returns nullptr, or what is wrong with that.
inline const char* charge(Context& context, Peer& peer, std::uint64_t price) {
  Allowance& allowance = peer.allowance;
  allowance.arrived += price;
  if (allowance.arrived > allowance.next_look) [[unlikely]]
    return look(context, peer);
  return nullptr;
}

/// Takes back the charge of an envelope for whose message there is no memory. It will come again, and be charged then.
inline void take_back(Peer& peer, std::uint64_t price) { peer.allowance.arrived -= price; }

/// Counts a message that was charged, and is kept.
void stored(Peer& peer, std::uint64_t price);
/// Grants credit after memory has become free: to this peer, if it is due, or to others that wait for some.
void grant_again(Context& context, Peer& peer);
/// Handles that a message that was kept is needed no longer.
inline void released(Context& context, Peer& peer, std::uint64_t price) {
  Allowance& allowance = peer.allowance;
  assert(allowance.stored >= price && allowance.lent >= price);
  allowance.stored -= price;
  allowance.lent -= price;
  context.credit.lent -= price;
  allowance.set_next_look();
  if (allowance.arrived > allowance.next_look || !context.credit.queue.empty()) [[unlikely]]
    grant_again(context, peer);
}

/// Handles that the sender has begun to withhold messages, or has no more of them. Returns false if there is no memory
/// to note that.
bool on_withheld(Context& context, Peer& peer, bool withholds, std::uint32_t episode);
/// Handles that the sender has answered so many questions. Returns nullptr, or what is wrong with that.
const char* on_resumed(Context& context, Peer& peer, std::uint64_t questions, std::uint32_t episode);

/// Serves starving senders that may withhold what a receive waits for: they get credit, or are asked.
void ask(Context& context, const PostedNode& receive);
/// Handles that a receive for messages of one source, or of any, waits.
inline void posted(Context& context, const PostedNode& receive) {
  if (!context.credit.starving.empty()) [[unlikely]]
    ask(context, receive);
}

/// Handles that a probe has found nothing. What it asks for is kept when it is offered.
void missed(Context& context, Session& session, int source, std::uint64_t tag, std::uint64_t mask);
/// Returns whether a message that is offered was asked for by a probe. If so, the caller has to keep it.
bool may_keep(Peer& peer);

/// Checks an offer, before it is looked at. Returns nullptr, or what is wrong with it.
const char* check(Peer& peer, const wire::Offer& offer, std::uint32_t batch);
/// Notes an offer that has been looked at. After the last one of the batch the sender gets its answer.
void offered(Context& context, Peer& peer, const wire::Offer& offer, bool taken);

/// Forgets a peer that is gone: it will send nothing more.
void gone(Context& context, Peer& peer);

}  // namespace canele::comm::flow_in
