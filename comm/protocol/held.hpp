// SPDX-License-Identifier: BSD-3-Clause
//
// Held messages: those that an unbound receive or a matched probe has taken, and that have no buffer yet.
//
// Used under the engine's lock, so by one thread at a time; by receive and refusal.
//
// A held message is in no table of the matcher, so its links are free. They make the list of held messages, and lead to
// the request that holds the message.
//
//   Engine::held ─▶ message ⇄ message         message ─chain▶ node of its request ─message▶ message
#pragma once

#include <utility>

#include "comm/state/context.hpp"

namespace canele::comm::held {

/// Gives the message to the request, which has no buffer yet.
inline void take(Context& context, Request& request, Message& message) {
  request.receive.message = &message;
  request.stage = Request::Stage::held;
  context.held.append(message);
  message.links.chain = &request.receive.node;
}

/// Returns the request that holds the message.
inline Request& holder_of(const Message& message) { return request_of(static_cast<PostedNode&>(*message.links.chain)); }

/// Takes the message away from the request that holds it, and returns it.
inline Message& release(Context& context, Request& request) {
  Message& message = *std::exchange(request.receive.message, nullptr);
  context.held.unlink(message);
  return message;
}

}  // namespace canele::comm::held
