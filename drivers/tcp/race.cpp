// SPDX-License-Identifier: BSD-3-Clause
//
// The attempts to connect to one rank. See race.hpp.
//
// A handshake that ends without a rejection is tried again, behind the other addresses: the peer's list of pending
// connections was full, or the peer was too busy to answer in time.
#include "drivers/tcp/race.hpp"

#include <poll.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <numeric>
#include <utility>

namespace canele::drivers::tcp {
namespace {

using net::Handshake;

/// Returns whether a non-blocking connect has ended, with success or failure.
bool dial_done(int fd) {
  pollfd one = {fd, POLLOUT, 0};
  return ::poll(&one, 1, 0) > 0;
}

}  // namespace

Race::Race(Rank peer, std::uint64_t incarnation, std::vector<net::Endpoint> addresses, bool same_host)
    : peer_(peer), incarnation_(incarnation), same_host_(same_host) {
  assert(!addresses.empty());
  for (const net::Endpoint& one : addresses) addresses_.push_back({one});
  restart();
}

void Race::restart() {
  open_.clear();
  waiting_.resize(addresses_.size());
  std::iota(waiting_.begin(), waiting_.end(), std::size_t{0});
  next_begin_ns_ = 0;
}

Race::State Race::step(const net::Party& self, DriverContext& context, const Dial& dial) {
  assert(!winner_);
  if (const State state = advance_open(self, context); state != State::running) return state;
  const std::uint64_t now = context.now_ns();
  while (may_begin(now)) begin(now, dial);
  return open_.empty() ? State::lost : State::running;
}

/// Advances the open attempts, and takes out those that have ended.
Race::State Race::advance_open(const net::Party& self, DriverContext& context) {
  for (std::size_t i = 0; i < open_.size();) {
    const Next next = advance(open_[i], self, context);
    if (next == Next::stays) {
      ++i;
      continue;
    }
    Attempt ended = std::move(open_[i]);
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
    if (next == Next::won) {
      open_.clear();
      winner_.emplace(std::move(ended));
      return State::won;
    }
    if (next == Next::again) waiting_.push_back(ended.address);
    note_end(context.now_ns());
  }
  return State::running;
}

Race::Next Race::advance(Attempt& attempt, const net::Party& self, DriverContext& context) {
  if (!attempt.handshake) {
    if (const Next next = check_dial(attempt, self, context); next != Next::stays || !attempt.handshake) return next;
  }
  const std::uint64_t now = context.now_ns();
  if (rests(attempt, now)) return Next::stays;
  const Handshake::State state = attempt.handshake->step(attempt.fd.get());
  if (state == Handshake::State::done) return Next::won;
  if (state == Handshake::State::failed) {
    note_failure(attempt.address, attempt.handshake->reason());
    return attempt.handshake->may_retry() && addresses_[attempt.address].retries++ < max_retries ? Next::again
                                                                                                 : Next::out;
  }
  if (attempt.told_ns == 0 && attempt.handshake->heard() >= Handshake::hello_size) {
    attempt.told_ns = std::max<std::uint64_t>(now, 1);
    wait_at_least(now + told_patience_ns);
  }
  return Next::stays;
}

/// Begins the handshake once TCP is connected.
Race::Next Race::check_dial(Attempt& attempt, const net::Party& self, DriverContext& context) {
  const std::uint64_t now = context.now_ns();
  if (!dial_done(attempt.fd.get())) {
    if (now - attempt.since_ns <= dial_limit_ns) return Next::stays;
    note_failure(attempt.address, "no answer within 10 s");
    return Next::out;
  }
  if (const int error = net::socket_error(attempt.fd.get()); error != 0) {
    refused_ = error == ECONNREFUSED;
    note_failure(attempt.address, net::error_text(error));
    return Next::out;
  }
  attempt.handshake.emplace(Handshake::initiator(self, context, peer_, incarnation_, {}));
  wait_at_least(now + hello_patience_ns);
  return Next::stays;
}

/// Returns whether the attempt has to wait, because another one has sent this rank's identity not long ago.
bool Race::rests(const Attempt& attempt, std::uint64_t now) const {
  return attempt.told_ns == 0 && std::any_of(open_.begin(), open_.end(), [&](const Attempt& one) {
           return one.told_ns != 0 && now - one.told_ns < told_patience_ns;
         });
}

bool Race::is_told() const {
  return std::any_of(open_.begin(), open_.end(), [](const Attempt& one) { return one.told_ns != 0; });
}

bool Race::wants_write() const {
  return std::any_of(open_.begin(), open_.end(),
                     [](const Attempt& one) { return one.handshake && one.handshake->wants_write(); });
}

bool Race::is_due(std::uint64_t now) const {
  if (!waiting_.empty() && (open_.empty() || (!same_host_ && now >= next_begin_ns_))) return true;
  return std::any_of(open_.begin(), open_.end(),
                     [&](const Attempt& one) { return !one.handshake && now - one.since_ns > dial_limit_ns; });
}

bool Race::may_begin(std::uint64_t now) {
  if (waiting_.empty()) return false;
  if (open_.empty()) return true;
  return !same_host_ && now >= next_begin_ns_ && make_room(now);
}

/// Makes room for one more attempt, by moving the oldest silent one behind the addresses that wait.
bool Race::make_room(std::uint64_t now) {
  if (open_.size() < most_open) return true;
  const auto silent = std::find_if(open_.begin(), open_.end(), [&](const Attempt& one) {
    return one.told_ns == 0 && now - one.since_ns >= gives_way_after_ns;
  });
  if (silent == open_.end()) {
    wait_at_least(now + dial_patience_ns);
    return false;
  }
  note_failure(silent->address, "no answer yet");
  waiting_.push_back(silent->address);
  open_.erase(silent);
  return true;
}

void Race::begin(std::uint64_t now, const Dial& dial) {
  const std::size_t address = waiting_.front();
  waiting_.pop_front();
  ++begun_;
  net::UniqueFd fd = dial(addresses_[address].where);
  if (!fd) {
    refused_ = errno == ECONNREFUSED;
    note_failure(address, net::error_text(errno));
    return;
  }
  open_.push_back({address, std::move(fd), now, std::nullopt});
  next_begin_ns_ = now + dial_patience_ns;
}

void Race::note_failure(std::size_t address, const std::string& why) {
  problem_ = "cannot connect to " + addresses_[address].where.text() + ": " + why;
}

/// After the end of an attempt the next address is begun at once, unless a told attempt may still win.
void Race::note_end(std::uint64_t now) {
  if (!is_told()) next_begin_ns_ = now;
}

Race::Winner Race::take() {
  assert(winner_);
  Attempt won = std::move(*winner_);
  winner_.reset();
  return {std::move(won.fd), won.handshake->peer_incarnation()};
}

}  // namespace canele::drivers::tcp
