// SPDX-License-Identifier: BSD-3-Clause
//
// Alarm: the one descriptor that a sleeping engine watches: the bell that senders ring, letters, deaths, a timer.
//
// Who: the psm2 driver, if it only talks through shared memory. Threads: one at a time.
// Surprise: libpsm2 has no descriptor that tells of an arrival, and sleeping in timed steps alone feeds itself: whoever
//      waits for a rank that sleeps goes to sleep as well, and every message takes a step. So senders ring
//      (ledger.hpp), and the timer is for the few things that nobody rings for.
//
// Rejected: a thread that polls for us: it needs a core of its own.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "drivers/net/socket.hpp"

namespace canele::drivers::psm2 {

class Alarm {
 public:
  /// Watches these. False and *reason.
  bool open(std::initializer_list<int> descriptors, std::string* reason);
  void close();
  /// -1: not open.
  int descriptor() const { return all_.get(); }

  /// One more, until it is closed; its owner must be the only one who has it. Nothing happens if the alarm is not open.
  bool watch(int descriptor);
  /// Something that is watched is readable.
  bool is_due() const;
  /// Goes off once after this time.
  void set(std::uint64_t nanoseconds);
  void clear();

 private:
  net::UniqueFd all_, timer_;
  bool set_ = false;
};

}  // namespace canele::drivers::psm2
