// SPDX-License-Identifier: BSD-3-Clause
//
// Refusal of messages that no receive has taken.
#include "comm/engine/refusal.hpp"

#include <algorithm>
#include <vector>

#include "comm/multicast/relay.hpp"
#include "comm/protocol/held.hpp"
#include "comm/protocol/receive.hpp"
#include "comm/protocol/receive_eager.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "comm/state/message.hpp"

namespace canele::comm::refusal {
namespace {

bool sender_waits(const Message& message) { return message.rendezvous() || message.synchronous(); }

/// Drops a message that has been taken out of the tables.
void drop(Context& context, Message& message, Dropped& dropped) {
  if (dropped.count == 0 || message.stamp < dropped.stamp) {
    dropped.source = message.source;
    dropped.tag = message.tag;
    dropped.length = message.length();
    dropped.stamp = message.stamp;
  }
  ++dropped.count;
  if (sender_waits(message)) ++dropped.refused;
  context.counters.add(Counter::unexpected_dropped);
  receive_path::no_longer_unexpected(context, message);
  refuse(context, message, CANELE_ECANCELED);
}

/// Drops each message that is kept in a session that was given up. Called through Session::unmatched.
void drop_at_once(Session& session, const Message&) { drop_all(*session.context, session); }

/// Drops messages without a handler. Those for handlers that exist stay: the handlers go on until the end.
Dropped drop_unserved(Context& context, Session& session, std::uint64_t stamp) {
  std::vector<UnexpectedNode*> unserved;
  context.matcher.each_unexpected(session.match, [&](UnexpectedNode& node) {
    if (node.stamp < stamp && !session.serves(node.tag)) unserved.push_back(&node);
  });
  Dropped dropped;
  for (UnexpectedNode* const node : unserved) {
    context.matcher.take(session.match, *node);
    drop(context, static_cast<Message&>(*node), dropped);
  }
  return dropped;
}

void drop_leftovers_of(Context& context, Session& session, std::uint64_t stamp) {
  if (session.match.unexpected == 0 || session.drained_at_end()) return;
  if (!session.served.empty()) return report(context, session, drop_unserved(context, session, stamp));
  if (context.matcher.oldest(session.match)->stamp >= stamp) return;
  report(context, session, drop_all(context, session));
  session.unmatched = drop_at_once;
}

/// Drops what an unbound receive or a matched probe holds, and was given no buffer for.
void drop_held(Context& context, std::uint64_t stamp) {
  std::vector<Request*> without_buffer;
  context.held.each([&](MatchNode& node) {
    Request& request = held::holder_of(static_cast<Message&>(node));
    const Session& session = *request.session;
    if (node.stamp < stamp && session.served.empty() && !session.drained_at_end()) without_buffer.push_back(&request);
  });
  for (Request* const request : without_buffer) {
    Message& message = held::release(context, *request);
    refuse(context, message, CANELE_ECANCELED);
    request->cancelled = true;
    context.finish(*request, CANELE_ECANCELED);
  }
}

}  // namespace

void refuse(Context& context, Message& message, int reason) {
  Peer& peer = context.peer(message.source);
  if (message.rendezvous()) {
    Cast* const cast =
        message.origin().cast == 0 ? nullptr : multicast::find(context, message.source, message.origin().cast);
    if (cast != nullptr) {
      multicast::refused(context, *cast, reason);
    } else {
      rendezvous::fin(context, peer, message.handle(), reason);
    }
  } else if (message.synchronous()) {
    receive_path::acknowledge(context, peer, message.handle(), reason);
  }
  receive_path::discard(context, message);
}

Dropped drop_all(Context& context, Session& session) {
  Dropped dropped;
  context.matcher.drain(session.match,
                        [&](UnexpectedNode& node) { drop(context, static_cast<Message&>(node), dropped); });
  return dropped;
}

void report(Context& context, const Session& session, const Dropped& dropped) {
  if (dropped.count == 0) return;
  const bool one = dropped.count == 1;
  std::string words = std::to_string(dropped.count) + (one ? " message" : " messages") + " in session \"" +
                      session.label + "\" " + (one ? "was" : "were") +
                      " never received: " + (one ? "" : "the first is ") + "from rank " +
                      std::to_string(dropped.source) + ", tag " + std::to_string(dropped.tag) + ", " +
                      std::to_string(dropped.length) + " bytes";
  if (dropped.refused != 0) {
    words += "; " + std::to_string(dropped.refused) + (dropped.refused == 1 ? " sender waits" : " senders wait") +
             " for that, and " + (dropped.refused == 1 ? "its send ends" : "their sends end") + " with an error";
  }
  context.log(LogLevel::warning, words);
}

void drop_leftovers(Context& context, std::uint64_t stamp) {
  context.sessions.each([&](Session& session) { drop_leftovers_of(context, session, stamp); });
  drop_held(context, stamp);
}

}  // namespace canele::comm::refusal
