// SPDX-License-Identifier: BSD-3-Clause
//
// Flow control, the receiver's half: grants credit as messages are matched, and solicits blocked messages when a
// receive waits for it. See state/credit.hpp for the accounts, and credit_sender.hpp for the other half.
//
//   envelope ─▶ charge ─┬─ matched: nothing more
//                       └─ kept: stored ─▶ … ─▶ released ─▶ refill ─▶ credit ─▶ (sender) on_credit
//   receive waits ─▶ posted ─▶ solicit ─▶ (sender) blocked_envelope ─▶ receive matches ─▶ blocked_reply
//   probe misses ─▶ missed ───┘                                                  (sender) solicit_done ─▶ the next
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

namespace canele::comm::credit_receiver {

/// Notes a peer that has used up half of its window. Credit is granted before the lock is left, when it is known what
/// became of the message. Returns nullptr; or how the sender exceeds what it was granted.
Verdict update_window(Context& context, Peer& peer) CANELE_UNDER_LOCK;
/// Grants what is due. Called when peers are flushed.
void refill_all(Context& context) CANELE_UNDER_LOCK;

/// Charges an envelope that has come. Returns the verdict on that.
inline Verdict charge(Context& context, Peer& peer, std::uint64_t cost) CANELE_UNDER_LOCK {
  ReceiveWindow& window = peer.receive_window;
  window.arrived += cost;
  if (window.arrived > window.next_check) [[unlikely]]
    return update_window(context, peer);
  return Verdict::ok();
}

/// Takes back the cost of an envelope for whose message there is no memory. It will come again, and be charged then.
inline void take_back(Peer& peer, std::uint64_t cost) { peer.receive_window.arrived -= cost; }

/// Counts a message that was charged, and is kept.
void stored(Peer& peer, std::uint64_t cost);
/// Grants credit after memory has become free: to this peer, if it is due, or to others that wait for some.
void regrant(Context& context, Peer& peer) CANELE_UNDER_LOCK;
/// Handles that a message that was kept is needed no longer.
inline void released(Context& context, Peer& peer, std::uint64_t cost) CANELE_UNDER_LOCK {
  ReceiveWindow& window = peer.receive_window;
  assert(window.stored >= cost && window.reserved >= cost);
  window.stored -= cost;
  window.reserved -= cost;
  context.credit.reserved -= cost;
  window.set_next_check();
  if (window.arrived > window.next_check || !context.credit.queue.empty()) [[unlikely]]
    regrant(context, peer);
}

/// Handles that the sender has blocked messages, or has none any more. The verdict is retry if there is no memory to
/// note that.
Verdict on_blocked(Context& context, Peer& peer, bool is_blocked, std::uint32_t episode) CANELE_UNDER_LOCK;
/// Handles that the sender has completed so many solicitations. Returns the verdict on that.
Verdict on_solicit_done(Context& context, Peer& peer, std::uint64_t solicitations,
                        std::uint32_t episode) CANELE_UNDER_LOCK;

/// What a receive waits for, or what a session takes without one.
struct Pattern {
  int source;  ///< may be rank_any
  std::uint64_t tag, mask;
};
/// Serves blocked senders that may have such messages: they get credit, or their messages are solicited.
void ask(Context& context, Session& session, const Pattern& pattern) CANELE_UNDER_LOCK;
/// Handles that a receive for messages of one source, or of any, waits.
inline void posted(Context& context, const PostedNode& receive) CANELE_UNDER_LOCK {
  if (!context.credit.blocked_senders.empty()) [[unlikely]]
    ask(context, *request_of(receive).session, {receive.source, receive.tag, receive.mask});
}

/// Handles that a probe has found nothing. What it asks for is stored when its blocked envelope comes.
void missed(Context& context, Session& session, int source, std::uint64_t tag, std::uint64_t mask) CANELE_UNDER_LOCK;
/// Returns whether a probe has asked for a blocked envelope that has come. If so, the caller has to store it.
bool matches_pending_probe(Peer& peer);

/// Checks a blocked envelope before it is matched. Returns the verdict on it.
Verdict check(Peer& peer, const wire::BlockedEnvelope& blocked, std::uint32_t batch);
/// Notes a blocked envelope that has been matched. After the last one of the batch the sender gets its reply.
void note_blocked_envelope(Context& context, Peer& peer, const wire::BlockedEnvelope& blocked,
                           bool taken) CANELE_UNDER_LOCK;

/// Forgets a peer that is disconnected: it will send nothing more.
void on_disconnected(Context& context, Peer& peer) CANELE_UNDER_LOCK;

}  // namespace canele::comm::credit_receiver
