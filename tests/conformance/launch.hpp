// SPDX-License-Identifier: BSD-3-Clause
//
// Runs the ranks of one test as child processes and serves them: addresses, barriers, kill and stop.
//
// Used from the main thread; the process must have no other, because it forks. A stop lasts five seconds of real time.
// That duration is the object of the test (a driver that takes silence for death), not a way to wait for something.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/slowness.hpp"

namespace canele::conformance {

/// Seconds that a stopped rank stays stopped.
inline constexpr int stop_s = 5;
using test::slowness;
inline constexpr int wait_limit_s = 400 * slowness;   ///< s, for one condition in a rank
inline constexpr int test_limit_s = 1000 * slowness;  ///< s, for a whole test

/// What travels between a rank and its parent, in both directions, one per datagram.
struct Message {
  enum Kind : std::int32_t {
    address,    ///< up: my address; down: that of `rank`
    barrier,    ///< up: I have arrived; down: all have
    kill,       ///< up: kill `rank`; down: it is dead
    stop,       ///< up: stop `rank` for stop_s; down: it is stopped
    continued,  ///< down: `rank` runs again
    answer,     ///< up: bytes for the parent
  };
  std::int32_t kind = 0;
  std::int32_t rank = 0;
  std::uint32_t size = 0;
  std::byte bytes[1024] = {};

  static constexpr std::size_t head = 12;
};
bool post(int channel, const Message& message);
/// Returns 1 for a message, 0 if there is none (only if the channel does not block), -1 if the other end is closed.
int take(int channel, Message* message);

/// Where a rank is in its test, for people to read. In memory that the rank shares with its parent.
struct Place {
  char text[120];
};

struct Launch {
  int ranks = 2;
  bool threads = false;       ///< all ranks in one child, a thread each.
  bool leaves_files = false;  ///< files in /dev/shm are no error if a rank was killed
  /// Runs rank `rank` from start to end, in the child. Returns true if all went well.
  std::function<bool(int rank, int channel, Place& place)> body;
};

struct Outcome {
  std::vector<std::string> problems;
  std::vector<std::byte> answer;  ///< the last one
};

Outcome launch(const Launch& what);

}  // namespace canele::conformance
