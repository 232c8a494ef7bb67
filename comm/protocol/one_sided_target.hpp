// SPDX-License-Identifier: BSD-3-Clause
//
// One-sided operations at the target: each chunk is checked against its region, and executed at once.
//
//   on_attach ─▶ index ─▶ region            executed ──(end of the batch)──▶ acknowledge_all
//   on_put, on_get, on_atomic, on_notify, on_flush ─▶ executed, or access_failed
//        ├─ get ─▶ a reply in pieces: write_reply ─▶ on_reply_written
//        └─ large put or get ─▶ Transfer ─▶ on_served ─▶ executed
//
// Any thread may call these functions, under the engine's lock. What an honest origin cannot send is a violation. What
// it may send by mistake (an offset beyond the memory, a revoked key) is answered with an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/state/context.hpp"
#include "comm/state/one_sided.hpp"
#include "comm/wire/wire.hpp"

namespace canele::comm::one_sided {

Verdict on_attach(Context& context, Peer& peer, const wire::Head& head,
                  std::span<const std::byte> payload) CANELE_UNDER_LOCK;
Verdict on_detach(Context& context, Peer& peer, const wire::Head& head) CANELE_UNDER_LOCK;
Verdict on_put(Context& context, Peer& peer, const wire::Head& head,
               std::span<const std::byte> payload) CANELE_UNDER_LOCK;
Verdict on_get(Context& context, Peer& peer, const wire::Head& head,
               std::span<const std::byte> payload) CANELE_UNDER_LOCK;
Verdict on_atomic(Context& context, Peer& peer, const wire::Head& head,
                  std::span<const std::byte> payload) CANELE_UNDER_LOCK;
Verdict on_notify(Context& context, Peer& peer, const wire::Head& head,
                  std::span<const std::byte> payload) CANELE_UNDER_LOCK;
Verdict on_flush(Context& context, Peer& peer, const wire::Head& head,
                 std::span<const std::byte> payload) CANELE_UNDER_LOCK;

/// The message with the data of a large operation has ended, well or not. Ends the transfer.
void on_served(Context& context, Transfer& transfer) CANELE_UNDER_LOCK;

/// Queues the totals that are due to peers.
void acknowledge_all(Context& context) CANELE_UNDER_LOCK;

/// The program has taken the notification. Its origin may send another one.
void on_taken(Context& context, Notification& notification) CANELE_UNDER_LOCK;

}  // namespace canele::comm::one_sided
