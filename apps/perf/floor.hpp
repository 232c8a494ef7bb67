// SPDX-License-Identifier: BSD-3-Clause
//
// Floor: the hardware baseline, measured without any library between the same two pinned processes.
//
// Threads: the main thread of both ranks; both ranks call every function, and it returns at both. A floor spins. It
// yields only after a time far beyond any reply, so that a measurement ends even on a machine with other work. On a
// quiet machine it never yields.
#pragma once

#include <sched.h>

#include <cstddef>
#include <memory>
#include <string>

#include "gpu.hpp"
#include "job.hpp"

namespace canele::perf {

/// Counts fruitless polls and yields after many of them (at once if both ranks share a core).
class SpinThenYield {
 public:
  SpinThenYield(bool oversubscribed, int polls) : limit_(oversubscribed ? 0 : polls) {}
  void missed() {
    if (++polls_ <= limit_) return;
    sched_yield();
    polls_ = 0;
  }
  void hit() { polls_ = 0; }

 private:
  int limit_;
  int polls_ = 0;
};

class Floor {
 public:
  virtual ~Floor() = default;
  virtual std::string name() const = 0;
  /// Returns what stream() measures.
  virtual std::string stream_name() const { return name(); }
  /// Returns the nanoseconds of one message of `size` bytes one way, mean over `rounds` ping-pongs.
  virtual double ping_pong(std::size_t size, int rounds) = 0;
  /// Returns the nanoseconds per message of a stream of `rounds` windows of `window` messages.
  virtual double stream(std::size_t size, int window, int rounds) = 0;
  /// Returns what ring() measures; empty: there is no such floor here.
  virtual std::string ring_name() const { return {}; }
  /// Returns the nanoseconds per message of `rounds` windows of `window` small messages, each window answered by a
  /// flag.
  virtual double ring(std::size_t, int, int) { return 0; }
  /// Tells whether there is a bare engine with room for windows of so many messages.
  virtual bool has_engine(int /*window*/) const { return false; }
  /// Return the nanoseconds of one message by a bare engine (bare_engine.hpp). exchange_ping_pong(): one way, of
  /// `rounds` ping-pongs. exchange(): of a stream of `rounds` windows of `window` messages, whose tags are `tags` in
  /// turn. Only if has_engine().
  virtual double exchange_ping_pong(std::size_t, int) { return 0; }
  virtual double exchange(std::size_t, int /*window*/, int /*rounds*/, std::uint64_t /*tags*/) { return 0; }
};

/// Makes a floor of flags and data in memory that both ranks map. `most` is the largest size to be measured.
std::unique_ptr<Floor> make_shm_floor(Job& job, std::size_t most);

/// Makes a floor of a socket over the loop-back interface: non-blocking, TCP_NODELAY, polled without a pause.
std::unique_ptr<Floor> make_tcp_floor(Job& job, std::size_t most);

/// Makes a floor of copies of the device, for ranks with memory of these kinds: not host for both.
std::unique_ptr<Floor> make_gpu_floor(Job& job, MemoryKind first, MemoryKind second, std::size_t most);

}  // namespace canele::perf
