// SPDX-License-Identifier: BSD-3-Clause
//
// The list of pending connections. See pending_connections.hpp.
//
// A connection that ends in error is only logged. No rank has failed, because the peer has not proven its rank.
#include "drivers/net/pending_connections.hpp"

#include <utility>

#include "drivers/net/accept_limiter.hpp"

namespace canele::drivers::net {

std::uint32_t PendingConnections::admit(DriverContext& context, UniqueFd fd) {
  assert(has_place(context));
  if (connections_.size() == room_)
    drop_at(context, one_to_drop(context), "too many unauthenticated connections at a time");
  connections_.push_back({std::move(fd), Handshake::acceptor(*self_, context), context.now_ns(), ++last_id_});
  return last_id_;
}

/// Returns the index of a connection, or connections_.size() if it has gone.
std::size_t PendingConnections::find(std::uint32_t id) const {
  std::size_t at = 0;
  while (at < connections_.size() && connections_[at].id != id) ++at;
  return at;
}

/// Returns the index of the connection to drop for a new one, or connections_.size() if none may be dropped yet.
std::size_t PendingConnections::one_to_drop(DriverContext& context) const {
  const std::uint64_t now = context.now_ns();
  std::size_t found = connections_.size();
  for (std::size_t i = 0; i < connections_.size() && now - connections_[i].since_ns >= pending_grace_ns; ++i) {
    if (found == connections_.size() || connections_[i].handshake.heard() < connections_[found].handshake.heard())
      found = i;
  }
  return found;
}

PendingConnections::Outcome PendingConnections::step(DriverContext& context, std::uint32_t id,
                                                     const std::function<void(Connection&&)>& proven) {
  const std::size_t at = find(id);
  if (at == connections_.size()) return Outcome::nothing;
  Connection& connection = connections_[at];
  const auto state = connection.handshake.step(connection.fd.get());
  if (state == Handshake::State::failed) {
    drop_at(context, at, connection.handshake.reason());
    return Outcome::dropped;
  }
  if (connection.handshake
          .wants_write()) {  // epoll does not watch pending connections for room to write; the rank connects again
    drop_at(context, at, "its socket has no room for an answer");
    return Outcome::dropped;
  }
  if (state != Handshake::State::identified) return Outcome::nothing;
  Connection out = std::move(connection);
  connections_.erase(connections_.begin() + static_cast<std::ptrdiff_t>(at));
  proven(std::move(out));
  return Outcome::authenticated;
}

int PendingConnections::drop_silent(DriverContext& context) {
  int count = 0;
  for (; expired(context); ++count) drop_at(context, 0, "silent for 10 s");
  return count;
}

void PendingConnections::drop(DriverContext& context, std::uint32_t id, const std::string& why) {
  if (const std::size_t at = find(id); at < connections_.size()) drop_at(context, at, why);
}

void PendingConnections::drop_at(DriverContext& context, std::size_t at, const std::string& why) {
  ++rejected_;
  once_.log(context, 2, "an inbound connection was closed: " + why);
  connections_.erase(connections_.begin() + static_cast<std::ptrdiff_t>(at));
}

}  // namespace canele::drivers::net
