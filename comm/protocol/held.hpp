// SPDX-License-Identifier: BSD-3-Clause
//
// Held: messages that a late receive or a matched probe has taken, and that have no buffer yet.
//
// Who: receive_path, refusal.
// Threads: under the engine's lock.
// Surprise: a message that is in no table has links of its own to spare: they make the list, and lead to its request.
//
//   Engine::held ─▶ message ⇄ message         message ─chain▶ node of its request ─message▶ message
#pragma once

#include <utility>

#include "comm/core/engine.hpp"

namespace canele::comm::held {

/// The message is the request's, which has no buffer yet.
inline void take(Engine& engine, Request& request, Message& message) {
  request.receive.message = &message;
  request.stage = Request::Stage::held;
  engine.held.append(message);
  message.links.chain = &request.receive.node;
}

/// The request that holds it.
inline Request& holder_of(const Message& message) { return request_of(static_cast<PostedNode&>(*message.links.chain)); }

/// The message that the request holds, which is its no longer.
inline Message& release(Engine& engine, Request& request) {
  Message& message = *std::exchange(request.receive.message, nullptr);
  engine.held.unlink(message);
  return message;
}

}  // namespace canele::comm::held
