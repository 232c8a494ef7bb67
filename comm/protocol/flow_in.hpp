// SPDX-License-Identifier: BSD-3-Clause
//
// Flow control, the receiver's half: grants credit as messages are matched, and asks for what senders withhold when a
// receive waits for it. See core/credit.hpp for the accounts, flow_out.hpp for the other half.
//
// Who: receive_path, the end of a peer. Threads: under the engine's lock.
// Surprise: a message that meets its receive costs one addition and one comparison; everything else is done when half
//     of what the sender may send is used up.
//
//   envelope ─▶ charge ─┬─ matched: nothing more
//                       └─ kept: stored ─▶ … ─▶ released ─▶ refill ─▶ credit ─▶ (sender) on_credit
//   receive waits ─▶ posted ─▶ resume ─▶ (sender) offers ─▶ receive_path matches ─▶ offered ─▶ answer
//   probe misses ─▶ missed ───┘                                                       (sender) resumed ─▶ the next
#pragma once

#include <cassert>
#include <cstdint>

#include "comm/core/engine.hpp"
#include "comm/packet/wire.hpp"

namespace canele::comm::flow_in {

/// Half of the window is used up: credit is granted before the lock is left, when it is known what became of the
/// message. nullptr; or the sender sends what it must not, and how.
const char* look(Engine& engine, Peer& peer);
/// Grants what is due. By whoever pumps.
void refill_all(Engine& engine);

/// An envelope has come. nullptr, or what is wrong with that.
inline const char* charge(Engine& engine, Peer& peer, std::uint64_t price) {
  Allowance& allowance = peer.allowance;
  allowance.arrived += price;
  if (allowance.arrived > allowance.next_look) [[unlikely]]
    return look(engine, peer);
  return nullptr;
}

/// There is no memory for the message of that envelope: it will come again, and be charged then.
inline void take_back(Peer& peer, std::uint64_t price) { peer.allowance.arrived -= price; }

/// A message that was charged is kept.
void stored(Peer& peer, std::uint64_t price);
/// There is memory again: this peer may be due for credit, or others that waited for some.
void grant_again(Engine& engine, Peer& peer);
/// A message that was kept is needed no longer.
inline void released(Engine& engine, Peer& peer, std::uint64_t price) {
  Allowance& allowance = peer.allowance;
  assert(allowance.stored >= price && allowance.lent >= price);
  allowance.stored -= price;
  allowance.lent -= price;
  engine.credit.lent -= price;
  allowance.set_next_look();
  if (allowance.arrived > allowance.next_look || !engine.credit.queue.empty()) [[unlikely]]
    grant_again(engine, peer);
}

/// The sender has begun to withhold messages, or has no more of them. False: there is no memory to note that.
bool on_withheld(Engine& engine, Peer& peer, bool withholds, std::uint32_t episode);
/// It has answered so many questions. nullptr, or what is wrong with that.
const char* on_resumed(Engine& engine, Peer& peer, std::uint64_t questions, std::uint32_t episode);

/// Starving senders, or one of them, may withhold what is waited for: they get credit, or are asked.
void ask(Engine& engine, const PostedNode& receive);
/// A receive for messages of one source, or of any, waits.
inline void posted(Engine& engine, const PostedNode& receive) {
  if (!engine.credit.starving.empty()) [[unlikely]]
    ask(engine, receive);
}

/// The same for a probe that has found nothing. What it asks for is kept when it is offered.
void missed(Engine& engine, Session& session, int source, std::uint64_t tag, std::uint64_t mask);
/// A message is offered to a probe: was one asked for? If so, it is the caller's to keep.
bool may_keep(Peer& peer);

/// nullptr, or what is wrong with an offer: to be asked before it is looked at.
const char* check(Peer& peer, const wire::Offer& offer, std::uint32_t batch);
/// An offer has been looked at. After the last one of the batch the sender gets its answer.
void offered(Engine& engine, Peer& peer, const wire::Offer& offer, bool taken);

/// A peer is gone: it will send nothing more.
void gone(Engine& engine, Peer& peer);

}  // namespace canele::comm::flow_in
