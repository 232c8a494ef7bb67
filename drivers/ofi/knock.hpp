// SPDX-License-Identifier: BSD-3-Clause
//
// Knock: is there still a process behind the address of a peer? Asked of the peer's kernel, for providers over TCP.
//
// Who: the ofi driver. Threads: one at a time.
// Surprise: tcp;ofi_rxm never says that a peer is gone: it reconnects for ever, and answers -FI_EAGAIN all the while.
// Its
//      endpoint's name is the address that it listens on, so one connection attempt of ours tells: refused means that
//      nobody listens any more. A peer that only computes, or is stopped, has its kernel accept. Nothing is sent.
//
// Rejected: a time limit on sends. A rank that computes for minutes would be declared dead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "drivers/ofi/provider.hpp"

namespace canele::drivers::ofi {

/// Names of this provider are addresses of listening TCP sockets.
bool can_knock(const fi_info& info);

class Knock {
 public:
  Knock() = default;
  Knock(const Knock&) = delete;
  Knock& operator=(const Knock&) = delete;
  ~Knock() { end(); }

  enum class Answer : std::uint8_t { none_yet, somebody, nobody };
  /// Begins, if none is under way, and looks for the answer; does not block.
  Answer ask(std::span<const std::byte> name);

 private:
  void end();
  int fd_ = -1;
};

}  // namespace canele::drivers::ofi
