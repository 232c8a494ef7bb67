// SPDX-License-Identifier: BSD-3-Clause
//
// PendingConnections: the inbound connections that are pending, whose peers are not authenticated yet. Bounded in
// number and in time.
//
// Used by drivers to which any process on the network can connect (tcp; shm has a list of its own). The limiter
// tells which of them has data. One thread at a time uses an object.
//
//   admit() ──▶ [ connection | … | connection ]  oldest first, at most 64
//                 │ silent for 10 s, garbage, a wrong secret ──▶ closed, one line in the log for each reason
//                 └ proven ──▶ step() hands it out; the driver accepts, defers or rejects it
//
// A full list drops the connection that has sent the fewest bytes, and the oldest of those, but none that is younger
// than pending_grace_ns. Unauthenticated peers thus cannot keep a rank out, and a rank that is dropped connects again
// (Handshake::may_retry()). While all of them are that young, new connections wait in the kernel's queue.
//
// Rejected: a list with links. 64 slots move cheaply, and only when an unauthenticated peer comes or goes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "drivers/net/handshake.hpp"
#include "drivers/net/once.hpp"
#include "drivers/net/socket.hpp"

namespace canele::drivers::net {

class PendingConnections {
 public:
  static constexpr std::size_t capacity = 64;
  static constexpr std::uint64_t patience_ns = 10'000'000'000;

  struct Connection {
    UniqueFd fd;
    Handshake handshake;
    std::uint64_t since_ns;
    std::uint32_t id;
  };

  /// The result of step().
  enum class Outcome : std::uint8_t { nothing, authenticated, dropped };

  explicit PendingConnections(const Party& self, std::size_t room = capacity) : self_(&self), room_(room) {}

  /// Returns true if a connection can be admitted. A full list must be able to drop another one for it.
  bool has_place(DriverContext& context) const {
    return connections_.size() < room_ || one_to_drop(context) < connections_.size();
  }
  /// Takes in a connection that has just been accepted; requires has_place(). Returns its number. The socket is
  /// non-blocking.
  std::uint32_t admit(DriverContext& context, UniqueFd fd);

  /// Advances connection `id`, if it still exists. Passes a connection that reaches State::identified to
  /// `proven(connection)`.
  Outcome step(DriverContext& context, std::uint32_t id, const std::function<void(Connection&&)>& proven);
  void drop(DriverContext& context, std::uint32_t id, const std::string& why);
  /// Drops the connections that have been silent for too long, and returns their number.
  int drop_silent(DriverContext& context);

  /// Returns true if the oldest connection has been silent for too long.
  bool expired(DriverContext& context) const {
    return !connections_.empty() && context.now_ns() - connections_.front().since_ns > patience_ns;
  }
  bool empty() const { return connections_.empty(); }
  std::size_t size() const { return connections_.size(); }
  std::uint64_t rejected() const { return rejected_; }
  void clear() { connections_.clear(); }

 private:
  std::size_t find(std::uint32_t id) const;
  std::size_t one_to_drop(DriverContext& context) const;
  void drop_at(DriverContext& context, std::size_t at, const std::string& why);

  const Party* self_;
  std::size_t room_;
  std::uint32_t last_id_ = 0;
  std::vector<Connection> connections_;
  std::uint64_t rejected_ = 0;
  Once once_;
};

}  // namespace canele::drivers::net
