// SPDX-License-Identifier: BSD-3-Clause
//
// Ground: what a workload stands on: time, who lives, and where complaints go.
//
// Who: Traffic and Oracle ask it. A World is one, with all ranks in one thread; tests/process/stress is another, with
//     one rank of a real job.
// Threads: that of the rank that asks.
// Surprise: only what a workload must know is here, so that it cannot know that it is simulated.
#pragma once

#include <cstdint>
#include <string>

namespace canele::sim {

class Ground {
 public:
  virtual ~Ground() = default;

  virtual int ranks() const = 0;
  /// Does something else than the rank itself make its engine progress?
  virtual bool has_worker() const = 0;
  virtual std::uint64_t now_ns() const = 0;
  /// The rank computes for so long.
  virtual void pause_for(std::uint64_t ns) = 0;

  /// Something is not as promised.
  virtual void complain(const std::string& what) = 0;
  /// Part of what makes this run different from others.
  virtual void trace(std::uint64_t /*what*/) {}

  /// It has died once: also if another process has come in its place.
  virtual bool is_dead(int /*rank*/) const { return false; }
  virtual int deaths() const { return 0; }
  /// Processes that the rank had before this one.
  virtual int life(int /*rank*/) const { return 0; }
  /// Its body is over: it leaves, or has left.
  virtual bool is_leaving(int /*rank*/) const { return false; }
};

}  // namespace canele::sim
