// SPDX-License-Identifier: BSD-3-Clause
//
// Large puts and gets: their data goes as a message of the library's session, by all means that large messages have.
//
//   origin: begin ─┬─▶ chunk (put or get, by message) ──▶ target: checks the access
//                  └─▶ send, or receive ◀── message ──▶ receive into the region, or send from it
//                            └─▶ on_transferred                 └─▶ on_served
//
// The tag follows from the number of the operation in its lane, which both ends count. The end of a message is
// delivered as to a program: by a task, which then takes the lock.
//
// Any thread may call these functions, under the engine's lock.
#pragma once

#include <cstdint>

#include "comm/state/context.hpp"
#include "comm/state/one_sided.hpp"

namespace canele::comm::one_sided {

/// Which end of an operation a message is for.
struct TransferName {
  int peer;
  std::uint16_t lane;
  std::uint64_t number;  ///< of the operation, in its lane
  bool get;
};

/// Sends the data of a put to its target, or of a get to its origin.
void send(Context& context, Transfer& transfer, const TransferName& name, const canele_data_t& data,
          std::int32_t priority) CANELE_UNDER_LOCK;
/// Receives the data of a put at its target, or of a get at its origin.
void receive(Context& context, Transfer& transfer, const TransferName& name,
             const canele_data_t& data) CANELE_UNDER_LOCK;
/// Ends a receive for which no message will come. Returns false if one has come.
bool stop_receiving(Context& context, Transfer& transfer) CANELE_UNDER_LOCK;

}  // namespace canele::comm::one_sided
