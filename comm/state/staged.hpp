// SPDX-License-Identifier: BSD-3-Clause
//
// Staged: what the engine knows of a message whose data is in device memory.
//
// The request of such a message has host memory in the place of the program's. So no floor below comm/device touches
// device memory, or knows of it. Only the end of the request is special: the data of a receive is copied to the device
// before the program is told.
//
//   Request.data ─base─▶ staging memory          Request.word has staged_bit, so no path publishes its events
//               └─context─▶ Staged               without may_publish()
//
// The data of a send may stay where it is (`key`). A device of the receiver then copies it, or a clear to send makes
// the owner copy it to staging memory.
//
// A send may leave when the first of its data is in staging memory. It pauses after what is there:
//
//   staging memory:  sent ────▶ Request.expected = available ─────▶ granted_end ──▶ length
//
// Threading: the functions are called under the engine's lock. None of them waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/state/peer.hpp"
#include "comm/state/request.hpp"
#include "comm/state/under_lock.hpp"
#include "drivers/driver.hpp"

namespace canele::comm {

/// A copy by a device of the receiver.
struct DeviceGet {
  std::span<const std::byte> key;  ///< describes the sender's memory; valid until `done` is submitted
  int rank;                        ///< of the sender
  std::uint64_t length;            ///< bytes to copy, from the first on
  drivers::Status* status;         ///< how it ended: set before `done` is submitted
  Op* done;
};

struct Staged {
  /// Returns whether the events may be published now. Otherwise the owner publishes them later, together with those
  /// that follow. The last event of a request may be published only once it has returned true.
  bool (*may_publish)(Staged& staged, Context& context, Request& request, unsigned events);
  /// The last event has been published: the request does not use the staging memory any more, and may be gone.
  void (*ended_publishing)(Staged& staged);

  /// Of a send: describes its data for devices of the receiver. Empty: the data is in staging memory.
  std::span<const std::byte> key;
  /// Of a send with a key: begins to copy its data to staging memory, and ends the key. Nothing is available then.
  void (*stage)(Staged& staged) = nullptr;
  /// Of a send: bytes of its data that are in staging memory, from the first on. Where that changes, the owner calls
  /// rendezvous::send_further().
  std::uint64_t available = whole;
  /// Of a send: where the bytes that a clear to send has asked for end. 0: none is in force.
  std::uint64_t granted_end = 0;
  /// Of a send: its device has failed, so the rest will not be available. It ends when it has paused.
  bool failed = false;
  /// Of a send that has failed: calls rendezvous::fail_send().
  void (*fail)(Staged& staged) = nullptr;

  /// Of a receive: the first `bytes` bytes are in staging memory, and more will come. Any thread, also without the
  /// lock; one at a time.
  void (*arrived)(Staged& staged, std::uint64_t bytes) = nullptr;
  /// Of a receive: begins to copy the data from the sender's device. nullptr: no device can do that.
  void (*get)(Staged& staged, const DeviceGet& get) = nullptr;

  static constexpr std::uint64_t whole = ~std::uint64_t{0};
};

/// Returns what is known of a request whose word has staged_bit.
inline Staged& staged_of(const Request& request) {
  return *static_cast<Staged*>(const_cast<void*>(request.data.context));
}
inline bool is_staged(const Request& request) {
  return (request.word.load(std::memory_order_relaxed) & RequestWord::staged_bit) != 0;
}
/// Returns whether the data of a send is on a device, and not in the memory that Request.data names.
inline bool is_on_device(const Request& send) { return is_staged(send) && !staged_of(send).key.empty(); }
/// Returns whether some data of a send is not in the memory that Request.data names, or not yet.
inline bool is_incomplete(const Request& send) {
  return is_staged(send) && staged_of(send).available < send.data.length;
}
/// Returns whether a send would go on to the end of what was granted if more of its data were available.
inline bool is_short_of_data(const Request& send) {
  return is_staged(send) && staged_of(send).granted_end > send.expected;
}
/// Ends a staged send whose device has failed, if none of its data is under way.
inline void fail_if_paused(const Peer& peer, Request& send) {
  Staged& staged = staged_of(send);
  if (staged.failed && send.moved == send.expected && !send.item.queued && !peer.holds(send)) staged.fail(staged);
}

}  // namespace canele::comm
