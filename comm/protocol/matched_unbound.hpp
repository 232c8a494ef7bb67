// SPDX-License-Identifier: BSD-3-Clause
//
// Messages that an unbound receive or a matched probe has taken, and that have no buffer yet.
//
// Used under the engine's lock, so by one thread at a time; by receive and rejection.
//
// Such a message is in no table of the matcher, so its links are free. They make the list of these messages, and lead
// to the receive that has matched the message.
//
//   Engine::matched_unbound ─▶ message ⇄ message         message ─chain▶ node of its request ─message▶ message
#pragma once

#include <utility>

#include "comm/state/context.hpp"

namespace canele::comm::matched_unbound {

/// Gives the message to the request, which has no buffer yet.
inline void add(Context& context, Request& request, Message& message) CANELE_UNDER_LOCK {
  request.receive.message = &message;
  transition(request, Request::Stage::matched_unbound);
  context.matched_unbound.append(message);
  message.links.chain = &request.receive.node;
}

/// Returns the receive that has matched the message.
inline Request& receive_of(const Message& message) {
  return request_of(static_cast<PostedNode&>(*message.links.chain));
}

/// Takes the message away from its receive, and returns it.
inline Message& remove(Context& context, Request& request) CANELE_UNDER_LOCK {
  Message& message = *std::exchange(request.receive.message, nullptr);
  context.matched_unbound.unlink(message);
  return message;
}

}  // namespace canele::comm::matched_unbound
