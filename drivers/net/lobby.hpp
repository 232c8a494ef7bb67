// SPDX-License-Identifier: BSD-3-Clause
//
// Lobby: the inbound connections of which we do not know yet who they are. Bounded in number and in time.
//
// Who: drivers that anybody on the network can call (tcp; shm has a list of its own).
// Threads: one object, one thread at a time.
// Surprise: a full lobby drops its oldest guest, not the newest: 64 silent strangers cannot keep a rank out, and
//      a rank that is dropped connects again (Handshake::may_retry()).
//
//   admit() ──▶ [ guest | guest | … | guest ]  oldest first, at most 64
//                 │ silent for 10 s, garbage, a wrong secret ──▶ closed, one line in the log
//                 └ proven ──▶ step() hands it out; the driver accepts, holds or refuses it
//
// Rejected: a list with links. 64 slots move cheaply, and only when a stranger comes or goes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "drivers/net/handshake.hpp"
#include "drivers/net/socket.hpp"

namespace canele::drivers::net {

class Lobby {
 public:
  static constexpr std::size_t capacity = 64;
  static constexpr std::uint64_t patience_ns = 10'000'000'000;

  struct Guest {
    UniqueFd fd;
    Handshake handshake;
    std::uint64_t since_ns;
  };

  explicit Lobby(const Party& self) : self_(&self) {}

  /// Takes in a connection that has just been accepted. The socket is non-blocking.
  void admit(DriverContext& context, UniqueFd fd);

  /// Moves every guest on; `proven(guest)` gets each that reaches State::identified, out of the lobby. Returns how many
  /// came out.
  int step(DriverContext& context, const std::function<void(Guest&&)>& proven);

  /// The oldest guest has been silent for too long.
  bool overdue(DriverContext& context) const {
    return !guests_.empty() && context.now_ns() - guests_.front().since_ns > patience_ns;
  }
  bool empty() const { return guests_.empty(); }
  std::size_t size() const { return guests_.size(); }
  std::uint64_t refused() const { return refused_; }
  void clear() { guests_.clear(); }

 private:
  void drop(DriverContext& context, std::size_t at, const std::string& why);

  const Party* self_;
  std::vector<Guest> guests_;
  std::uint64_t refused_ = 0;
};

}  // namespace canele::drivers::net
