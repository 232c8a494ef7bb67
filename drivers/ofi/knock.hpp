// SPDX-License-Identifier: BSD-3-Clause
//
// Knock: is there still a process behind the address of a peer? Asked of the peer's kernel: over TCP, or for shm.
//
// Who: the ofi driver. Threads: one at a time.
// Surprise: tcp;ofi_rxm never says that a peer is gone: it reconnects for ever, and answers -FI_EAGAIN all the while.
//     Its endpoint's name is the address that it listens on, so one connection attempt of ours tells: refused means
//     that nobody listens any more. A peer that only computes, or is stopped, has its kernel accept. Nothing is sent.
//     A name of shm is process, user and number, and a file in /dev/shm while the endpoint is open.
//
// Rejected: a time limit on sends. A rank that computes for minutes would be declared dead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "drivers/ofi/provider.hpp"

namespace canele::drivers::ofi {

/// Names of this provider are addresses of listening TCP sockets.
bool listens(const fi_info& info);
/// The same, or those of shm.
bool can_knock(const fi_info& info);
/// A socket that connects to such a name, non-blocking. -1: failed at once, *error says how.
int start_connect(std::span<const std::byte> name, int* error);
/// The same at the provider's own listener. Closing it resets the connection: one that ends in order before anything
/// was said is kept by libfabric 1.17, and the peer's descriptor stays readable for ever.
int start_knock(std::span<const std::byte> name, int* error);

class Knock {
 public:
  /// At a name of a provider with such names.
  explicit Knock(std::span<const std::byte> name, std::uint32_t format) : name_(name), format_(format) {}
  Knock(const Knock&) = delete;
  Knock& operator=(const Knock&) = delete;
  ~Knock() { end(); }

  enum class Answer : std::uint8_t { none_yet, somebody, nobody };
  /// Begins, if none is under way, and looks for the answer; does not block.
  Answer ask();

 private:
  Answer ask_host() const;
  void end();

  std::span<const std::byte> name_;
  std::uint32_t format_;
  int fd_ = -1;
};

}  // namespace canele::drivers::ofi
