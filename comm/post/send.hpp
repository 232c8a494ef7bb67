// SPDX-License-Identifier: BSD-3-Clause
//
// A send that ends within its post: the message leaves under one acquisition of the engine's lock.
//
// Any thread, without the engine's lock. Inline: its callers are the entries of the program.
#pragma once

#include <cstddef>
#include <cstdint>

#include "comm/engine/engine.hpp"
#include "comm/protocol/send_fast.hpp"
#include "comm/state/request_setup.hpp"

namespace canele::comm::post {

/// Returns true if the outcome of a send may be written to the request before the send is attempted. False if the
/// buffer may be device memory: host_may_send_at_once() is for a buffer that is known to be none.
inline bool may_send_at_once(const Session& session, int destination, std::size_t length, const Request& request) {
  return length <= Rail::longest_fast && is_unwatched(request) && request.stage == Request::Stage::idle &&
         session.posts_fast && destination >= 0 && destination < session.context->size;
}
inline bool host_may_send_at_once(const Session& session, int destination, std::size_t length, const Request& request) {
  return length <= Rail::longest_fast && is_unwatched(request) && request.stage == Request::Stage::idle &&
         session.open && destination >= 0 && destination < session.context->size;
}

/// Sends an eager message if nothing stands in its way. Returns false, with nothing sent, if it has to be posted. The
/// outcome is written first in either case, so that its values need no registers while the driver works.
[[gnu::always_inline]] inline bool send_at_once(Session& session, int destination, std::uint64_t tag,
                                                const void* buffer, std::size_t length, Request& request) {
  Engine& engine = engine_of(*session.context);
  request.context = &engine;
  request.session = &session;
  request.kind = Request::Kind::send;
  request.cancelled = false;
  request.rank = destination;
  request.status_error = CANELE_OK;
  request.told = 0;
  request.status_tag = tag;
  request.status_length = length;
  if (!engine.try_lock_to_post()) [[unlikely]]
    return false;
  const bool sent = send_path::try_send_fast(engine, destination, {session, tag, buffer, length});
  if (sent) request.word.store(event::finalized, std::memory_order_release);
  engine.unlock_idle();
  return sent;
}

/// Sends the eager message of a begun request, as send_at_once() does it. Other threads may wait for the request. If it
/// returns false, the request is begun as before, and its outcome has been written.
[[gnu::noinline]] inline bool send_begun_at_once(Session& session, int destination, std::uint64_t tag,
                                                 const canele_data_t& data, Request& request) {
  if (data.segments != nullptr || data.length > Rail::longest_fast) return false;
  Engine& engine = engine_of(*session.context);
  request.session = &session;
  request.rank = destination;
  request.status_tag = tag;
  request.status_length = data.length;
  if (!engine.try_lock_to_post()) [[unlikely]]
    return false;
  const bool sent = send_path::try_send_fast(engine, destination, {session, tag, data.base, data.length});
  if (sent) engine.finish_begun(request);
  engine.unlock();
  return sent;
}

}  // namespace canele::comm::post
