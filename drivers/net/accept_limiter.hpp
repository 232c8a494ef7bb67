// SPDX-License-Identifier: BSD-3-Clause
//
// AcceptLimiter: the descriptors of listeners and of unproven connections, and a budget that bounds what they may cost.
//
// Used by drivers that listen (tcp, shm), from poll() and arm(), by one thread at a time. The descriptors lie in an
// epoll set of their own inside the driver's set. The limiter rests by muting that one inner set. A flood of
// connections then neither shows in the driver's set nor wakes a sleeping engine.
//
//   driver's epoll ◀── inner epoll ◀── listener, connection, connection ...
//        ▲               muted while the limiter rests
//        └── timer: ends the rest of a sleeping engine; made at the first rest that an engine sleeps through
//
// A pending connection is one whose peer is not authenticated yet.
//
// The budget: an accept or a step of a handshake is one action. A turn has at most `per_turn` actions. Unused actions
// accumulate up to `most_saved`. Each millisecond gives `per_ms` actions back, and a connection that is authenticated
// gives its actions back at once. After a turn that met an unauthenticated peer, or spent the last action, the limiter
// rests for a millisecond. So ranks that connect to each other wait for nothing, and unauthenticated peers cost at most
// per_ms actions per millisecond.
//
// Rejected: accept with a limit per event. The number of events is the choice of the unauthenticated peer.
#pragma once

#include <sys/epoll.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "drivers/net/socket.hpp"

namespace canele::drivers::net {

/// A younger connection is not dropped in favour of another one: its first bytes may be in flight. In nanoseconds.
inline constexpr std::uint64_t pending_grace_ns = 5'000'000;

/// Returns how many unproven connections a driver may hold: an eighth of the descriptors of this process, at least 4
/// and at most 64.
std::size_t pending_allowed();

/// Returns true if `error` says that no descriptors are left.
bool is_out_of_descriptors(int error);

class AcceptLimiter {
 public:
  static constexpr int per_turn = 16, per_ms = 16, most_saved = 96;
  static constexpr int handshake_actions = 4;  ///< minimum cost of a connection until it is authenticated
  static constexpr std::uint64_t rest_ns = 1'000'000;
  static constexpr int most_events = 96;

  /// Makes the inner set. Its events and those of the timer come with `tag` from `epoll`. False and errno on failure.
  bool open(int epoll, std::uint64_t tag);
  void close();

  /// Adds a descriptor. False and errno on failure. A closed descriptor leaves the set by itself.
  bool watch(int fd, std::uint64_t tag);
  void forget(int fd);

  /// Records that epoll has named the limiter, or that a pending connection has timed out.
  void ring() { rang_ = true; }
  bool rung() const { return rang_ && !muted_; }
  /// Returns true if a turn may begin at `now`.
  bool is_due(std::uint64_t now) const { return (rang_ || muted_) && now >= rest_until_ns_; }
  /// Begins a turn if one is due, and returns true if so. Each true is followed by end_turn().
  bool begin_turn(std::uint64_t now);
  /// Writes the events that are ready, at most most_events, and returns their number.
  int ready(epoll_event* out);
  /// Returns true if an action is left in this turn.
  bool may_act() const { return acts_ < per_turn && saved_ > 0; }
  void act() {
    ++acts_;
    --saved_;
    ++actions_;
  }
  /// Records that the peer of a pending connection has proven to be a rank.
  void proven() { saved_ = saved_ + handshake_actions < most_saved ? saved_ + handshake_actions : most_saved; }
  /// Records that the peer of a pending connection was no rank: the limiter rests after this turn.
  void note_unauthenticated() { rests_ = true; }
  void end_turn(std::uint64_t now);

  bool resting() const { return muted_; }
  /// Prepares for the engine's sleep. Returns false if the engine must not sleep yet.
  bool may_sleep(std::uint64_t now);
  /// Returns the number of all actions so far.
  std::uint64_t actions() const { return actions_; }

 private:
  bool mute(bool on);

  int epoll_ = -1;
  std::uint64_t tag_ = 0;
  UniqueFd inner_, timer_;
  bool rang_ = false, muted_ = false, rests_ = false, timer_set_ = false;
  int acts_ = 0, saved_ = most_saved;
  std::uint64_t refilled_ns_ = 0, rest_until_ns_ = 0, actions_ = 0;
};

}  // namespace canele::drivers::net
