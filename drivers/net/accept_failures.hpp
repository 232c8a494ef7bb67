// SPDX-License-Identifier: BSD-3-Clause
//
// AcceptFailures: what a driver does with inbound connections that it cannot accept.
//
// Used by drivers that listen (tcp, shm), by one thread at a time. A connection that is left in the kernel's queue
// keeps its listener readable, and lets its peer wait. So there are two remedies:
//
//   no descriptors are left ──▶ the spare descriptor is closed, and the connection accepted in its place and closed
//   nothing could be accepted or closed for patience_ns ──▶ the driver closes the listener
//
// A closed listener ends the attempts of peers. A peer whose own attempt has ended takes the attempt of this rank.
//
// Rejected: a limit on the number of failures. Failures come as often as the driver looks.
#pragma once

#include <cstdint>

#include "drivers/net/once.hpp"
#include "drivers/net/socket.hpp"

namespace canele::drivers::net {

class AcceptFailures {
 public:
  static constexpr std::uint64_t patience_ns = 2'000'000'000;

  /// Opens the spare descriptor. False and errno on failure.
  bool open();
  void close() { spare_.reset(); }

  void note_accepted() { since_ns_ = 0; }
  /// Handles an accept that failed with `error`, which is neither EAGAIN nor EINTR. Returns false if the caller has to
  /// close the listener.
  bool handle(DriverContext& context, int listener, int error);

 private:
  bool close_one(int listener);

  UniqueFd spare_;
  std::uint64_t since_ns_ = 0;  ///< when failures began that nothing interrupted; 0: there are none
  Once once_;
};

}  // namespace canele::drivers::net
