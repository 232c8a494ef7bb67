// SPDX-License-Identifier: BSD-3-Clause
//
// Rejection of messages that no receive has taken.
#include "comm/engine/rejection.hpp"

#include <algorithm>
#include <vector>

#include "comm/multicast/relay.hpp"
#include "comm/protocol/matched_unbound.hpp"
#include "comm/protocol/receive.hpp"
#include "comm/protocol/receive_eager.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "comm/state/message.hpp"

namespace canele::comm::rejection {
namespace {

bool sender_waits(const Message& message) { return message.rendezvous() || message.synchronous(); }

/// Drops a message that has been taken out of the tables.
void drop(Context& context, Message& message, int reason, Dropped& dropped) CANELE_UNDER_LOCK {
  if (dropped.count == 0 || message.post_order < dropped.post_order) {
    dropped.source = message.source;
    dropped.tag = message.tag;
    dropped.length = message.length();
    dropped.post_order = message.post_order;
  }
  ++dropped.count;
  if (sender_waits(message)) ++dropped.rejected;
  context.counters.add(Counter::unexpected_dropped);
  receive_path::no_longer_unexpected(context, message);
  reject(context, message, reason);
}

/// Drops each message that is kept in a session that was given up. Called through Session::unmatched.
void drop_on_arrival(Session& session, Message&) CANELE_UNDER_LOCK { drop_all(*session.context, session); }

/// Drops messages without a handler. Those for handlers that exist stay: the handlers go on until the end.
Dropped drop_unserved(Context& context, Session& session, std::uint64_t post_order) CANELE_UNDER_LOCK {
  std::vector<UnexpectedNode*> unserved;
  context.matcher.each_unexpected(session.match, [&](UnexpectedNode& node) {
    if (node.post_order < post_order && !session.serves(node.tag)) unserved.push_back(&node);
  });
  Dropped dropped;
  for (UnexpectedNode* const node : unserved) {
    context.matcher.take(session.match, *node);
    drop(context, static_cast<Message&>(*node), CANELE_ECANCELED, dropped);
  }
  return dropped;
}

void drop_leftovers_of(Context& context, Session& session, std::uint64_t post_order) CANELE_UNDER_LOCK {
  if (session.match.unexpected == 0 || session.discarded_at_end()) return;
  if (!session.served.empty()) return report(context, session, drop_unserved(context, session, post_order));
  if (context.matcher.oldest(session.match)->post_order >= post_order) return;
  report(context, session, drop_all(context, session));
  session.unmatched = drop_on_arrival;
}

/// Drops what an unbound receive or a matched probe has matched, and was given no buffer for.
void drop_matched_unbound(Context& context, std::uint64_t post_order) CANELE_UNDER_LOCK {
  std::vector<Request*> without_buffer;
  context.matched_unbound.each([&](MatchNode& node) {
    Request& request = matched_unbound::receive_of(static_cast<Message&>(node));
    const Session& session = *request.session;
    if (node.post_order < post_order && session.served.empty() && !session.discarded_at_end())
      without_buffer.push_back(&request);
  });
  for (Request* const request : without_buffer) {
    Message& message = matched_unbound::remove(context, *request);
    reject(context, message, CANELE_ECANCELED);
    request->cancelled = true;
    context.finish(*request, CANELE_ECANCELED);
  }
}

}  // namespace

void reject(Context& context, Message& message, int reason) {
  Peer& peer = context.peer(message.source);
  if (message.rendezvous()) {
    IncomingMulticast* const incoming = message.origin().multicast_id == 0
                                            ? nullptr
                                            : multicast::find(context, message.source, message.origin().multicast_id);
    if (incoming != nullptr) {
      multicast::on_rejected(context, *incoming, reason);
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
  context.matcher.drain(session.match, [&](UnexpectedNode& node) {
    assume_lock();  // drain() is called here, under it
    drop(context, static_cast<Message&>(node), CANELE_ECANCELED, dropped);
  });
  return dropped;
}

void discard_one(Context& context, Session& session, Message& message) {
  context.matcher.take(session.match, message);
  Dropped dropped;
  drop(context, message, CANELE_OK, dropped);
}

void report(Context& context, const Session& session, const Dropped& dropped) {
  if (dropped.count == 0) return;
  const bool one = dropped.count == 1;
  std::string words = std::to_string(dropped.count) + (one ? " message" : " messages") + " in session \"" +
                      session.label + "\" " + (one ? "was" : "were") +
                      " never received: " + (one ? "" : "the first is ") + "from rank " +
                      std::to_string(dropped.source) + ", tag " + std::to_string(dropped.tag) + ", " +
                      std::to_string(dropped.length) + " bytes";
  if (dropped.rejected != 0) {
    words += "; " + std::to_string(dropped.rejected) + (dropped.rejected == 1 ? " sender waits" : " senders wait") +
             " for that, and " + (dropped.rejected == 1 ? "its send ends" : "their sends end") + " with an error";
  }
  context.log(LogLevel::warning, words);
}

void drop_leftovers(Context& context, std::uint64_t post_order) {
  context.sessions.each([&](Session& session) CANELE_UNDER_LOCK { drop_leftovers_of(context, session, post_order); });
  drop_matched_unbound(context, post_order);
}

}  // namespace canele::comm::rejection
