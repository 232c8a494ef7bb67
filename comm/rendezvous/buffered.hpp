// SPDX-License-Identifier: BSD-3-Clause
//
// BufferedSend: its data lies in the broadcast segment of its driver, so that the sending rank goes on.
//
//     Copy ◀── users ──┬─ BufferedSend to 1 ──rts──▶            one copy for all ranks that get the same data
//     (in segment)     ├─ BufferedSend to 2 ──rts──▶ get, fin
//                      └─ the sending thread, until its next step
//
// Any thread may call put() and release(). All other functions are called under the engine's lock. The callers are
// collectives/blocking_executor.cpp, collectives/async_executor.cpp, and Context::finish().
//
// On the wire a buffered send is a large message like any other (rts, a get, fin). But no thread waits for its end, and
// it does not count as a request of its session. So a group may be destroyed while a rank has yet to fetch what it was
// sent. Only finalize waits for it.
//
// Rejected: several short messages, each as long as fits a packet. A ring holds few of them. Where ranks share a core,
// they would have to switch each time that the ring is full.
#pragma once

#include <atomic>
#include <cstdint>

#include "comm/rendezvous/state.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::buffered {

struct Copy {
  DriverInstance* instance = nullptr;
  drivers::MemoryKey rkey;
  std::uint64_t length = 0;
  std::atomic<std::uint32_t> users{1};
};

struct BufferedSend : Request {
  Copy* copy = nullptr;
  BufferedSend* next = nullptr;  ///< in the engine's list
  BufferedSend* prev = nullptr;
};

/// Returns whether a message of this length should be a buffered send. That is of no use where each rank has a
/// unit of its own. There both ends of a message copy at the same time, through the driver's buffers.
[[maybe_unused]] static inline bool is_worthwhile(const Context& context, std::uint64_t length, std::uint64_t longest) {
  if (CANELE_BUGGIFY(buffered_send)) return length != 0;
  return context.oversubscribed && length > Rail::longest_fast && length <= longest;
}
/// Ends the use of the copy by the caller.
void release(Copy& copy);

/// Lists a buffered send that is about to be sent.
void enlist(Context& context, BufferedSend& one) CANELE_UNDER_LOCK;
/// Handles the end of a buffered send, successful or not.
void complete(Context& context, Request& request) CANELE_UNDER_LOCK;
/// Drops the buffered sends that have not ended when the engine ends.
void forget_all(Context& context) CANELE_UNDER_LOCK;

inline const Copy& copy_of(const Request& request) { return *static_cast<const BufferedSend&>(request).copy; }

}  // namespace canele::comm::buffered
