// SPDX-License-Identifier: BSD-3-Clause
//
// The waiting room of unproven connections; see lobby.hpp. Who, threads: see there.
// Surprise: a guest that leaves in error is only logged: no rank has failed, since nobody knows who it was.
#include "drivers/net/lobby.hpp"

#include <utility>

namespace canele::drivers::net {

void Lobby::admit(DriverContext& context, UniqueFd fd) {
  if (guests_.size() == capacity) drop(context, 0, "too many unproven connections at a time, the oldest goes");
  guests_.push_back({std::move(fd), Handshake::acceptor(*self_, context), context.now_ns()});
}

int Lobby::step(DriverContext& context, const std::function<void(Guest&&)>& proven) {
  if (guests_.empty()) return 0;
  const std::uint64_t now = context.now_ns();
  int count = 0;
  for (std::size_t i = 0; i < guests_.size();) {
    Guest& guest = guests_[i];
    const auto state = guest.handshake.step(guest.fd.get());
    if (state == Handshake::State::identified) {
      Guest out = std::move(guest);
      guests_.erase(guests_.begin() + static_cast<std::ptrdiff_t>(i));
      ++count;
      proven(std::move(out));
    } else if (state == Handshake::State::failed) {
      drop(context, i, guest.handshake.reason());
    } else if (now - guest.since_ns > patience_ns) {
      drop(context, i, "silent for 10 s");
    } else {
      ++i;
    }
  }
  return count;
}

void Lobby::drop(DriverContext& context, std::size_t at, const std::string& why) {
  ++refused_;
  context.log(2, "an inbound connection was closed: " + why);
  guests_.erase(guests_.begin() + static_cast<std::ptrdiff_t>(at));
}

}  // namespace canele::drivers::net
