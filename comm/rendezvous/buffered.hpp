// SPDX-License-Identifier: BSD-3-Clause
//
// Deposit: a buffered send. Its data lies on the shelf of its driver, so that the sending rank has gone on.
//
//     Copy ◀── users ──┬─ Deposit to 1 ──rts──▶            one copy for all ranks that get the same data
//     (on the shelf)   ├─ Deposit to 2 ──rts──▶ pull, fin
//                      └─ the sending thread, until its next step
//
// Any thread may call put() and release(). All other functions are called under the engine's lock. The callers are
// collectives/blocking_executor.cpp, collectives/async_executor.cpp, and Context::finish().
//
// On the wire a deposit is a large message like any other (rts, a pull, fin). But no thread waits for its end, and it
// does not count as a request of its session. So a group may be destroyed while a rank has yet to fetch what it was
// sent. Only finalize waits for it.
//
// Rejected: several short messages, each as long as fits a packet. A message of 64 KiB takes five of them, and a ring
// of 48 KiB holds three. Where ranks share a core, they would have to switch for each 48 KiB.
#pragma once

#include <atomic>
#include <cstdint>

#include "comm/rendezvous/state.hpp"
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
  Deposit* next = nullptr;  ///< in the engine's list
  Deposit* prev = nullptr;
};

/// Returns whether a message of this length should be a deposit. A deposit is of no use where each rank has a unit of
/// its own. There both ends of a message copy at the same time, through the driver's buffers.
[[maybe_unused]] static inline bool pays(const Context& context, std::uint64_t length, std::uint64_t longest) {
  if (CANELE_BUGGIFY(deposit)) return length != 0;
  return context.crowded && length > Rail::longest_at_once && length <= longest;
}
/// Ends the use of the copy by the caller.
void release(Copy& copy);

/// Lists a deposit that is about to be sent.
void enlist(Context& context, Deposit& one);
/// Handles the end of a deposit, successful or not.
void over(Context& context, Request& request);
/// Drops the deposits that have not ended when the engine ends.
void forget_all(Context& context);

inline const Copy& copy_of(const Request& request) { return *static_cast<const Deposit&>(request).copy; }

}  // namespace canele::comm::deposit
