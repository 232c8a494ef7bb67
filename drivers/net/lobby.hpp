// SPDX-License-Identifier: BSD-3-Clause
//
// Lobby: the pending inbound connections, whose peers are not authenticated yet. Bounded in number and in time.
//
// Used by drivers to which any process on the network can connect (tcp; shm has a list of its own). The door tells
// which pending connection (guest) has data. One thread at a time uses an object.
//
//   admit() ──▶ [ guest | guest | … | guest ]  oldest first, at most 64
//                 │ silent for 10 s, garbage, a wrong secret ──▶ closed, one line in the log for each reason
//                 └ proven ──▶ step() hands it out; the driver accepts, holds or refuses it
//
// A full lobby drops the guest that has sent the fewest bytes, and the oldest of those, but none that is younger than
// guest_grace_ns. Unauthenticated peers thus cannot keep a rank out, and a rank that is dropped connects again
// (Handshake::may_retry()). While all guests are that young, new connections wait in the kernel's queue.
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

class Lobby {
 public:
  static constexpr std::size_t capacity = 64;
  static constexpr std::uint64_t patience_ns = 10'000'000'000;

  struct Guest {
    UniqueFd fd;
    Handshake handshake;
    std::uint64_t since_ns;
    std::uint32_t id;
  };

  /// The result of step().
  enum class Came : std::uint8_t { nothing, out, dropped };

  explicit Lobby(const Party& self, std::size_t room = capacity) : self_(&self), room_(room) {}

  /// Returns true if a connection can be admitted. A full lobby must be able to drop another one for it.
  bool has_place(DriverContext& context) const { return guests_.size() < room_ || who_goes(context) < guests_.size(); }
  /// Takes in a connection that has just been accepted; requires has_place(). Returns its number. The socket is
  /// non-blocking.
  std::uint32_t admit(DriverContext& context, UniqueFd fd);

  /// Advances guest `id`, if it still exists. Passes a guest that reaches State::identified to `proven(guest)`.
  Came step(DriverContext& context, std::uint32_t id, const std::function<void(Guest&&)>& proven);
  void drop(DriverContext& context, std::uint32_t id, const std::string& why);
  /// Drops the guests that have been silent for too long, and returns their number.
  int drop_silent(DriverContext& context);

  /// Returns true if the oldest guest has been silent for too long.
  bool overdue(DriverContext& context) const {
    return !guests_.empty() && context.now_ns() - guests_.front().since_ns > patience_ns;
  }
  bool empty() const { return guests_.empty(); }
  std::size_t size() const { return guests_.size(); }
  std::uint64_t refused() const { return refused_; }
  void clear() { guests_.clear(); }

 private:
  std::size_t find(std::uint32_t id) const;
  std::size_t who_goes(DriverContext& context) const;
  void drop_at(DriverContext& context, std::size_t at, const std::string& why);

  const Party* self_;
  std::size_t room_;
  std::uint32_t last_id_ = 0;
  std::vector<Guest> guests_;
  std::uint64_t refused_ = 0;
  Once once_;
};

}  // namespace canele::drivers::net
