// SPDX-License-Identifier: BSD-3-Clause
//
// LivenessProbe: asks the peer's kernel whether there is still a process behind the peer's address: over TCP,
// or for shm.
//
// Used by the ofi driver, by one thread at a time.
//
// tcp;ofi_rxm never reports that a peer is gone: it reconnects for ever, and answers -FI_EAGAIN all the while. Its
// endpoint's name is the address that it listens on. One connection attempt therefore tells: refused means that no
// process listens any more. If the peer only computes, or is stopped, its kernel accepts. Nothing is sent. A name of
// shm consists of process, user and number; a file in /dev/shm has this name while the endpoint is open.
//
// Rejected: a time limit on sends. A rank that computes for minutes would be declared dead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "drivers/ofi/provider.hpp"

namespace canele::drivers::ofi {

/// Returns true if names of this provider are addresses of listening TCP sockets.
bool listens(const fi_info& info);
/// Returns true if listens(), or if names of this provider are those of shm.
bool can_probe(const fi_info& info);
/// Returns a non-blocking socket that connects to such a name. -1: failed at once, *error says how.
int start_connect(std::span<const std::byte> name, int* error);
/// Returns such a socket to the provider's own listener. Closing the socket resets the connection. libfabric 1.17 keeps
/// a connection that ends in order before any data, and the peer's descriptor would stay readable for ever.
int start_probe(std::span<const std::byte> name, int* error);

class LivenessProbe {
 public:
  /// Prepares a probe of a name of a provider with such names.
  explicit LivenessProbe(std::span<const std::byte> name, std::uint32_t format) : name_(name), format_(format) {}
  LivenessProbe(const LivenessProbe&) = delete;
  LivenessProbe& operator=(const LivenessProbe&) = delete;
  ~LivenessProbe() { end(); }

  enum class Answer : std::uint8_t { pending, alive, dead };
  /// Begins a probe, if none is in progress, and checks for the answer; does not block.
  Answer ask();

 private:
  Answer ask_host() const;
  void end();

  std::span<const std::byte> name_;
  std::uint32_t format_;
  int fd_ = -1;
};

}  // namespace canele::drivers::ofi
