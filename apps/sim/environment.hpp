// SPDX-License-Identifier: BSD-3-Clause
//
// Environment: what a workload needs from outside: time, which ranks are alive, and where complaints go.
//
// Traffic and Oracle use it. A World is one implementation, with all ranks in one thread. tests/process/stress is
// another, with one rank of a real job. Called in the thread of the rank. It has only what a workload must know, so
// that a workload cannot know that it is simulated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace canele::sim {

class Environment {
 public:
  virtual ~Environment() = default;

  virtual int ranks() const = 0;
  /// Tells whether anything other than the rank itself makes its engine progress.
  virtual bool has_worker() const = 0;
  virtual std::uint64_t now_ns() const = 0;
  /// Lets the rank compute for `ns` nanoseconds.
  virtual void pause_for(std::uint64_t ns) = 0;

  /// May move a buffer of a rank to a device. Its bytes are elsewhere until take_from_device().
  virtual void give_to_device(int /*rank*/, std::vector<std::byte>& /*bytes*/) {}
  virtual void take_from_device(std::vector<std::byte>& /*bytes*/) {}

  /// Reports that a promise was broken.
  virtual void complain(const std::string& what) = 0;
  /// Adds to the hash that distinguishes this run from others.
  virtual void trace(std::uint64_t /*what*/) {}

  /// Returns true if the rank has died once, even if another process has taken its place.
  virtual bool is_dead(int /*rank*/) const { return false; }
  virtual int deaths() const { return 0; }
  /// Returns the number of processes that the rank had before this one.
  virtual int life(int /*rank*/) const { return 0; }
  /// Returns true if the rank's body has ended: it disconnects, or has disconnected.
  virtual bool is_disconnecting(int /*rank*/) const { return false; }
};

}  // namespace canele::sim
