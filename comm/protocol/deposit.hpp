// SPDX-License-Identifier: BSD-3-Clause
//
// Deposit: a send whose data lies on its driver's shelf, so that whoever sends has gone on.
//
// Who: collectives/direct.cpp and run.cpp; Engine::finish().
// Threads: put() and release() by any; the rest under the engine's lock.
// Surprise: it is a large message like any other (rts, a pull, fin), but nobody waits for its end, and nobody counts
//     it: it is no request of its session, so that a group may be destroyed while a rank has yet to fetch what it was
//     sent. Only finalize waits for it.
//
//     Copy ◀── users ──┬─ Deposit to 1 ──rts──▶            one copy for all who get the same
//     (on the shelf)   ├─ Deposit to 2 ──rts──▶ pull, fin
//                      └─ whoever sends, until the next step
//
// Rejected: several short messages, of what fits a packet each (64 KiB took five, 0.17 us each, and a ring of 48 KiB
// holds three: where ranks share a core that is a switch for each 48 KiB).
#pragma once

#include <atomic>
#include <cstdint>

#include "comm/core/engine.hpp"
#include "ltask/mark.hpp"

namespace canele::comm::deposit {

struct Copy {
  DriverSlot* slot = nullptr;
  drivers::Exposure exposure;
  std::uint64_t length = 0;
  std::atomic<std::uint32_t> users{1};
};

struct Deposit : Request {
  Copy* copy = nullptr;
  Deposit* next = nullptr;  ///< of the engine's
  Deposit* prev = nullptr;
};

/// Does it pay? Where ranks have a unit each, the ends of a message copy at the same time, by the driver's buffers.
[[maybe_unused]] static inline bool pays(const Engine& engine, std::uint64_t length, std::uint64_t longest) {
  if (CANELE_BUGGIFY(deposit)) return length != 0;
  return engine.crowded && length > Rail::longest_at_once && length <= longest;
}
/// Puts so much on the shelf that the peer reads: as long as a copy takes. nullptr: it reads none, or there is no room.
Copy* put(Engine& engine, int peer, const void* data, std::uint64_t length);
/// Not used by the caller any more.
void release(Copy& copy);

/// Sends it. false: not that way, to this peer.
bool send(Engine& engine, Session& session, int peer, std::uint64_t tag, std::int32_t priority, Copy& copy);
/// It has ended, well or not.
void over(Engine& engine, Request& request);
/// The engine ends, and some have not.
void forget_all(Engine& engine);

inline const Copy& copy_of(const Request& request) { return *static_cast<const Deposit&>(request).copy; }

}  // namespace canele::comm::deposit
