// SPDX-License-Identifier: BSD-3-Clause
//
// A short put, or a notification, that ends within its post: its packet leaves under one acquisition of the engine's
// lock.
//
// Any thread, without the engine's lock. Inline: its caller is the entry of the program.
#pragma once

#include "comm/engine/engine.hpp"
#include "comm/post/mapped_access.hpp"
#include "comm/protocol/one_sided_put_fast.hpp"

namespace canele::comm::post {

/// Sends a short put without a completion if nothing stands in its way. Returns false, with nothing sent, if it has to
/// be posted.
[[gnu::always_inline]] inline bool put_at_once(Engine& engine, const one_sided::ShortPut& put) {
  if (!engine.try_lock_to_post()) [[unlikely]]
    return false;
  const bool sent = one_sided::try_put_fast(engine, put);
  engine.unlock_idle();
  if (sent) note_posted(put.lane, false);
  return sent;
}

/// Sends a notification without a completion if nothing stands in its way. If `mapped` is given, the data of its put is
/// copied there first. Returns false, with nothing sent, if it has to be posted.
inline bool notify_at_once(Engine& engine, const one_sided::ShortNotification& one, std::byte* mapped,
                           const canele_data_t& data) {
  if (!engine.try_lock_to_post()) [[unlikely]]
    return false;
  one_sided::Stream* const stream = one_sided::may_notify_fast(engine, one);
  bool sent = false;
  if (stream != nullptr) [[likely]] {
    if (mapped != nullptr) put_mapped(mapped, data);
    sent = one_sided::notify_fast(engine, *stream, one);
  }
  engine.unlock_idle();
  if (sent) note_posted(one.lane, false);
  return sent;
}

}  // namespace canele::comm::post
