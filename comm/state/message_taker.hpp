// SPDX-License-Identifier: BSD-3-Clause
//
// MessageTaker: takes the messages that receives without a buffer meet, on behalf of active messages.
//
// A short message is taken where it arrives, and its receive stays posted. So it costs no event, and no other post. A
// message that is not taken is held by its receive, as by any receive without a buffer.
//
//   message ─▶ receive of role `taker` ─┬─ take(): true ──▶ the receive waits again, as the newest one
//                                       └─ take(): false ─▶ the receive holds the message ─▶ held() ─▶ … ─▶ its end
//
// Called by the thread that holds the engine's lock, in the order in which messages are matched.
//
// Rejected: a table of takers beside the matcher. Flow control asks blocked senders for what the matcher's receives
// wait for.
#pragma once

#include <cstddef>
#include <span>

#include "comm/state/request.hpp"
#include "comm/state/under_lock.hpp"

namespace canele::comm {

class MessageTaker {
 public:
  /// Copies a whole message, which its caller overwrites afterwards. Returns false if the receive has to hold it.
  virtual bool take(int source, std::span<const std::byte> message) CANELE_UNDER_LOCK = 0;
  /// The receive of this taker holds a message, and can be bound.
  virtual void held() CANELE_UNDER_LOCK = 0;

 protected:
  ~MessageTaker() = default;
};

/// Returns the taker of a receive without a buffer, or nullptr.
inline MessageTaker* taker_of(const Request& receive) {
  if (receive.role != Request::InternalRole::taker) return nullptr;
  return static_cast<MessageTaker*>(receive.argument);
}

}  // namespace canele::comm
