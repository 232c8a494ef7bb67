// SPDX-License-Identifier: BSD-3-Clause
//
// Receives that end without a message (cancelled, or failed with their peer), and probes, which take a message out of
// the tables.
//
// A receive with an RTR may have met a message at its sender. It can then not be cancelled any more.
#include <new>
#include <vector>

#include "comm/protocol/credit_receiver.hpp"
#include "comm/protocol/matched_unbound.hpp"
#include "comm/protocol/receive.hpp"
#include "comm/protocol/receive_eager.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::receive_path {

void take_out(Context& context, Request& request) {
  const PostedNode& node = request.receive.node;
  context.matcher.cancel(request.session->match, request.receive.node);
  if (request.handle != Handle::none) context.forget_rtr(request);
  set_envelope(request, node.tag, node.source, 0);
}

void end_posted(Context& context, int source, int error) {
  std::vector<Request*> doomed;
  const auto consider = [&](PostedNode& node) {
    if (source == rank_any || node.source == source) doomed.push_back(&request_of(node));
  };
  context.matcher.each_in_tables(consider);
  for (std::uint32_t i = 0; i < context.sessions.size(); ++i) {
    Matcher::each_in_session(context.sessions.at(i).match, consider);
  }
  for (Request* request : doomed) {
    CANELE_COVER(posted_receive_ended);
    take_out(context, *request);
    request->cancelled = error == CANELE_ECANCELED;
    context.trace(request->cancelled ? Event::receive_cancelled : Event::receive_failed, request->receive.node.source,
                  request->session, request->receive.node.tag);
    context.finish(*request, error);
  }
}

void cancel(Context& context, Request& request) {
  const bool posted =
      request.kind == Request::Kind::receive && request.stage == Request::Stage::posted && request.receive.node.queued;
  const bool waits = posted && (request.handle == Handle::none || context.withdraw_rtr(request));
  if (waits) {
    CANELE_COVER(cancel_took_out);
    take_out(context, request);
    request.cancelled = true;
  }
  // A request that ended while this cancel was linked has not published its end: it waits for the cancel.
  const bool ended = request.stage == Request::Stage::idle;
  request.word.fetch_and(~RequestWord::cancel_bit, std::memory_order_acq_rel);
  if (waits) {
    context.trace(Event::receive_cancelled, request.receive.node.source, request.session, request.receive.node.tag);
    context.finish(request, CANELE_ECANCELED);
  } else if (ended) {
    CANELE_COVER(cancel_came_after_the_end);
    const bool receive = request.kind == Request::Kind::receive;
    context.publish(request, receive ? event::received | event::finalized : event::finalized);
  }
}

/// Returns why no message can come from a rank any more, or CANELE_OK. Opens the connection in the background.
static int error_of_source(Context& context, int source) CANELE_UNDER_LOCK {
  const Peer& peer = context.peer(source);
  if (!peer.disconnected()) return CANELE_OK;
  CANELE_COVER_RARE(probe_of_disconnected);
  return peer.error;
}

void probe(Context& context, ProbeOp& op) {
  Session& session = *op.session;
  UnexpectedNode* node = nullptr;
  try {
    node = context.matcher.find(session.match, op.source, op.tag, op.mask);
  } catch (const std::bad_alloc&) {
    op.status.error = CANELE_ENOMEM;
    op.answered.store(true, std::memory_order_release);
    return;
  }
  op.found = node != nullptr;
  if (node == nullptr) {
    credit_receiver::missed(context, session, op.source, op.tag, op.mask);
    if (op.source != rank_any) op.status.error = error_of_source(context, op.source);
  } else {
    auto& message = static_cast<Message&>(*node);
    op.status = {CANELE_OK, message.source, message.tag, message.length(), 0};
    if (op.into != nullptr) {
      CANELE_COVER(probe_took);
      context.matcher.take(session.match, message);
      no_longer_unexpected(context, message);
      ++session.pending;
      Request& request = *op.into;
      set_envelope(request, message.tag, message.source, message.length());
      matched_unbound::add(context, request, message);
      request.word.fetch_or(event::header, std::memory_order_acq_rel);  // the return of the call tells the program
    }
  }
  op.answered.store(true, std::memory_order_release);
}

}  // namespace canele::comm::receive_path
