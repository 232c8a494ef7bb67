// SPDX-License-Identifier: BSD-3-Clause
//
// Door: the descriptors of what has proven nothing (listeners, unproven connections), and what they may cost.
//
// Who: drivers that listen (tcp, shm), from poll() and arm(). Threads: one at a time.
// Surprise: the descriptors lie in an epoll set of their own inside the driver's. To rest, that one set is muted: a
//      flood then neither shows in the driver's set nor wakes a sleeping engine.
//
//   driver's epoll ◀── inner epoll ◀── listener, guest, guest ...
//        ▲               muted while the door rests
//        └── timer: ends the rest of a sleeping engine; made at the first rest that an engine sleeps through
//
// The budget: an accept or a step of a handshake is one action. A turn has at most `per_turn` of them. Actions are
// saved up to `most_saved`; `per_ms` come back in a millisecond, and those of a guest that proves itself at once. After
// a turn that met a stranger, or spent the last action, the door rests for a millisecond. So ranks that connect to each
// other wait for nothing, and strangers cost at most per_ms actions in a millisecond.
//
// Rejected: accept with a limit per event. The number of events is the stranger's choice.
#pragma once

#include <sys/epoll.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "drivers/net/socket.hpp"

namespace canele::drivers::net {

/// A guest this young is not dropped for another one: its first words may be under way.
inline constexpr std::uint64_t guest_grace_ns = 5'000'000;

/// How many unproven connections a driver may hold: 64, or an eighth of the descriptors of this process.
std::size_t guests_allowed();

/// True if `error` says that descriptors are spent.
bool is_out_of_descriptors(int error);

class Door {
 public:
  static constexpr int per_turn = 16, per_ms = 16, most_saved = 96;
  static constexpr int handshake_actions = 4;  ///< what a guest costs until it has proven itself, at least
  static constexpr std::uint64_t rest_ns = 1'000'000;
  static constexpr int most_events = 96;

  /// Makes the inner set; events of it and of the timer come with `tag` from `epoll`. False and errno on failure.
  bool open(int epoll, std::uint64_t tag);
  void close();

  /// Adds a descriptor. False and errno on failure. What closes leaves by itself.
  bool watch(int fd, std::uint64_t tag);
  void forget(int fd);

  /// epoll has named the door, or a guest's time is up.
  void ring() { rang_ = true; }
  bool rung() const { return rang_ && !muted_; }
  /// A turn would begin at `now`.
  bool is_due(std::uint64_t now) const { return (rang_ || muted_) && now >= rest_until_ns_; }
  /// Is it time for a turn? Each true is followed by end_turn().
  bool begin_turn(std::uint64_t now);
  /// Writes what is ready, at most most_events; returns their number.
  int ready(epoll_event* out);
  /// Is an action left in this turn?
  bool may_act() const { return acts_ < per_turn && saved_ > 0; }
  void act() {
    ++acts_;
    --saved_;
    ++actions_;
  }
  /// A guest has proven to be a rank.
  void proven() { saved_ = saved_ + handshake_actions < most_saved ? saved_ + handshake_actions : most_saved; }
  /// A guest was none: the door rests after this turn.
  void met_stranger() { rests_ = true; }
  void end_turn(std::uint64_t now);

  bool resting() const { return muted_; }
  /// The engine is about to sleep. False: it may not yet.
  bool may_sleep(std::uint64_t now);
  /// All actions so far.
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
