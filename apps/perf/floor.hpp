// SPDX-License-Identifier: BSD-3-Clause
//
// Floor: what the machine allows without any library, measured between the same two pinned processes.
//
// Who: measure. Threads: the main thread of both ranks; every function is called by both, and returns at both.
// Surprise: a floor spins; only after a patience far beyond any answer's time does it yield, so that a measurement on a
//      machine with other work ends. On a quiet machine it never yields.
#pragma once

#include <sched.h>

#include <cstddef>
#include <memory>
#include <string>

#include "job.hpp"

namespace canele::perf {

/// Counts fruitless looks and yields after many (at once if both ranks share a core).
class Patience {
 public:
  Patience(bool crowded, int looks) : limit_(crowded ? 0 : looks) {}
  void again() {
    if (++looks_ <= limit_) return;
    sched_yield();
    looks_ = 0;
  }
  void rewarded() { looks_ = 0; }

 private:
  int limit_;
  int looks_ = 0;
};

class Floor {
 public:
  virtual ~Floor() = default;
  virtual std::string name() const = 0;
  /// What stream() measures.
  virtual std::string stream_name() const { return name(); }
  /// Nanoseconds of one message of `size` bytes one way, mean over `rounds` ping-pongs.
  virtual double ping_pong(std::size_t size, int rounds) = 0;
  /// Nanoseconds per message of a stream of `rounds` windows of `window` messages.
  virtual double stream(std::size_t size, int window, int rounds) = 0;
  /// What ring() measures; empty: there is no such floor here.
  virtual std::string ring_name() const { return {}; }
  /// Nanoseconds per message of `rounds` windows of `window` small messages, each window answered by a flag.
  virtual double ring(std::size_t, int, int) { return 0; }
  /// Whether a bare engine is here, and has room for windows of so many messages.
  virtual bool has_engine(int /*window*/) const { return false; }
  /// Nanoseconds of one message by a bare engine (bare_engine.hpp): one way, of `rounds` ping-pongs; or of a stream of
  /// `rounds` windows of `window` messages, whose tags are `tags` in turn. Only if it has_engine().
  virtual double exchange_ping_pong(std::size_t, int) { return 0; }
  virtual double exchange(std::size_t, int /*window*/, int /*rounds*/, std::uint64_t /*tags*/) { return 0; }
};

/// Flags and data in a memory that both ranks map. `most` is the largest size that will be asked for.
std::unique_ptr<Floor> make_shm_floor(Job& job, std::size_t most);

/// A socket over the loop-back interface, non-blocking, TCP_NODELAY, polled without a pause.
std::unique_ptr<Floor> make_tcp_floor(Job& job, std::size_t most);

}  // namespace canele::perf
