// SPDX-License-Identifier: BSD-3-Clause
//
// Alarm: the one descriptor that a sleeping engine watches: the bell that senders ring, letters, deaths, a timer.
//
// Used by the psm2 driver if it only communicates through shared memory, by one thread at a time.
//
// libpsm2 has no descriptor that reports an arrival. Timed sleeps alone reinforce each other: a rank that waits for a
// sleeping rank goes to sleep as well, and every message takes a step. Therefore senders ring (sender_lease_page.hpp),
// and the timer serves only the few events for which no process rings.
//
// Rejected: a thread that polls: it needs a core of its own.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "drivers/net/socket.hpp"

namespace canele::drivers::psm2 {

class Alarm {
 public:
  /// Opens the alarm and watches `descriptors`. False and *reason on failure.
  bool open(std::initializer_list<int> descriptors, std::string* reason);
  void close();
  /// -1: not open.
  int descriptor() const { return all_.get(); }

  /// Watches one more descriptor until it is closed. No other object may own a duplicate of it. Does nothing if the
  /// alarm is not open.
  bool watch(int descriptor);
  /// Returns true if a watched descriptor is readable.
  bool is_due() const;
  /// Sets the timer to expire once after this time.
  void set(std::uint64_t nanoseconds);
  void clear();

 private:
  net::UniqueFd all_, timer_;
  bool set_ = false;
};

}  // namespace canele::drivers::psm2
