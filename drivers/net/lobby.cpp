// SPDX-License-Identifier: BSD-3-Clause
//
// The list of pending connections. See lobby.hpp.
//
// A guest that ends in error is only logged. No rank has failed, because the guest has not proven which rank it is.
#include "drivers/net/lobby.hpp"

#include <utility>

#include "drivers/net/door.hpp"

namespace canele::drivers::net {

std::uint32_t Lobby::admit(DriverContext& context, UniqueFd fd) {
  assert(has_place(context));
  if (guests_.size() == room_) drop_at(context, who_goes(context), "too many unauthenticated connections at a time");
  guests_.push_back({std::move(fd), Handshake::acceptor(*self_, context), context.now_ns(), ++last_id_});
  return last_id_;
}

/// Returns the index of a guest, or guests_.size() if it has gone.
std::size_t Lobby::find(std::uint32_t id) const {
  std::size_t at = 0;
  while (at < guests_.size() && guests_[at].id != id) ++at;
  return at;
}

/// Returns the index of the guest to drop for a new one, or guests_.size() if none may be dropped yet.
std::size_t Lobby::who_goes(DriverContext& context) const {
  const std::uint64_t now = context.now_ns();
  std::size_t found = guests_.size();
  for (std::size_t i = 0; i < guests_.size() && now - guests_[i].since_ns >= guest_grace_ns; ++i) {
    if (found == guests_.size() || guests_[i].handshake.heard() < guests_[found].handshake.heard()) found = i;
  }
  return found;
}

Lobby::Came Lobby::step(DriverContext& context, std::uint32_t id, const std::function<void(Guest&&)>& proven) {
  const std::size_t at = find(id);
  if (at == guests_.size()) return Came::nothing;
  Guest& guest = guests_[at];
  const auto state = guest.handshake.step(guest.fd.get());
  if (state == Handshake::State::failed) {
    drop_at(context, at, guest.handshake.reason());
    return Came::dropped;
  }
  if (guest.handshake.wants_write()) {  // epoll does not watch guests for room to write; the rank connects again
    drop_at(context, at, "its socket has no room for an answer");
    return Came::dropped;
  }
  if (state != Handshake::State::identified) return Came::nothing;
  Guest out = std::move(guest);
  guests_.erase(guests_.begin() + static_cast<std::ptrdiff_t>(at));
  proven(std::move(out));
  return Came::out;
}

int Lobby::drop_silent(DriverContext& context) {
  int count = 0;
  for (; overdue(context); ++count) drop_at(context, 0, "silent for 10 s");
  return count;
}

void Lobby::drop(DriverContext& context, std::uint32_t id, const std::string& why) {
  if (const std::size_t at = find(id); at < guests_.size()) drop_at(context, at, why);
}

void Lobby::drop_at(DriverContext& context, std::size_t at, const std::string& why) {
  ++refused_;
  once_.log(context, 2, "an inbound connection was closed: " + why);
  guests_.erase(guests_.begin() + static_cast<std::ptrdiff_t>(at));
}

}  // namespace canele::drivers::net
