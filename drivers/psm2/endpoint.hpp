// SPDX-License-Identifier: BSD-3-Clause
//
// Endpoint: libpsm2, opened once, with its blocking calls in one place.
//
// Used by the psm2 driver, by one thread at a time.
//
// A process has one endpoint in its life. libpsm2 names it by the process id, so a peer of the first one could not
// distinguish a second one; open() rejects it. close() does not call psm2_ep_close() when only memory is used. That
// call waits a second for every busy peer, and the process usually ends soon anyway.
#pragma once

#include <psm2.h>
#include <psm2_mq.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "drivers/driver.hpp"

namespace canele::drivers::psm2 {

class Endpoint {
 public:
  Endpoint() = default;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  ~Endpoint() { close(); }

  /// Opens libpsm2. False and *reason on failure.
  bool open(std::uint64_t job, std::string* reason);
  /// Removes the endpoint's file from /dev/shm; with hardware, releases the hardware. Idempotent.
  void close();

  psm2_epid_t id() const { return id_; }
  psm2_mq_t queue() const { return queue_; }
  /// Returns true if libpsm2 uses shared memory only: no hardware, or not asked to use it.
  bool memory_only() const { return memory_only_; }
  /// Returns the longest message, in bytes, that libpsm2 copies at once instead of asking the receiver.
  std::size_t eager_limit() const { return eager_limit_; }

  void progress() const { psm2_poll(handle_); }
  /// Connects to `peer`. Blocks until the peer's libpsm2 answers, up to two seconds (libpsm2 rounds shorter limits up).
  /// Call it when the peer is known to be inside libpsm2 (see connect_coordinator.hpp).
  psm2_error_t connect(psm2_epid_t peer, psm2_epaddr_t* address) const;
  /// Returns the address of a peer if the two are connected, whichever end began. Else returns null.
  psm2_epaddr_t find(psm2_epid_t peer) const;
  /// Returns true if the two communicate through shared memory.
  bool shares_memory(psm2_epid_t peer) const;

 private:
  bool read_limits(std::string* reason);

  psm2_ep_t handle_ = nullptr;
  psm2_mq_t queue_ = nullptr;
  psm2_epid_t id_ = 0;
  bool memory_only_ = false;
  std::size_t eager_limit_ = 0;
};

/// Returns why libpsm2 cannot run here, judged by its hardware only; "" if it may.
std::string why_not_here();

}  // namespace canele::drivers::psm2
