// SPDX-License-Identifier: BSD-3-Clause
//
// Takes requests to send (RTS), and blocked envelopes: matches them, keeps them, or starts their
// transfer.
//
// Called by the thread that holds the engine's lock.
#pragma once

#include <cstdint>
#include <span>

#include "comm/state/context.hpp"
#include "comm/wire/wire.hpp"

namespace canele::comm::rendezvous {

/// A request to send that belongs to a multicast. Its owner hears what becomes of it.
class Arrival {
 public:
  /// Returns the number of the multicast, which is kept with the message. It is not 0.
  virtual std::uint32_t id() const = 0;
  /// Handles that the envelope is right, and its message is going to be matched or kept. Returns the sink of its data.
  virtual Sink& announced(const wire::Rts& rts, Session& session) CANELE_UNDER_LOCK = 0;
  /// Handles that no receive will ever take the message. Follows announced().
  virtual void rejected(int reason) CANELE_UNDER_LOCK = 0;
  /// Handles that the message is kept. Follows announced(). Its session may have rejected it meanwhile.
  virtual void kept() CANELE_UNDER_LOCK = 0;

 protected:
  ~Arrival() = default;
};

/// Handles a request to send. `arrival`: its multicast; nullptr: none. Returns the verdict on it.
Verdict on_rts(Context& context, Peer& peer, const wire::Head& head, std::span<const std::byte> payload,
               Arrival* arrival = nullptr) CANELE_UNDER_LOCK;

/// Handles the envelope of a blocked message. A receive that was posted before the solicitation takes it. A probe
/// that has asked for it has it kept. Else it is forgotten: receives posted since then may be meant for older messages,
/// which were not taken.
Verdict on_blocked_envelope(Context& context, Peer& peer, const wire::Head& head,
                            std::span<const std::byte> payload) CANELE_UNDER_LOCK;

}  // namespace canele::comm::rendezvous
