// SPDX-License-Identifier: BSD-3-Clause
//
// Endpoint: libpsm2, opened once; the blocking calls of it in one place.
//
// Who: the psm2 driver. Threads: one at a time.
// Surprise: a process has one endpoint in its life. libpsm2 names it by the process id, so a second one could not be
//     told from the first by who has talked to that; open() refuses it. close() does not call psm2_ep_close() when
//     only memory is used: that waits a second for every peer that is busy, and the process ends soon or does not
//     care.
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

  /// False and *reason: why not.
  bool open(std::uint64_t job, std::string* reason);
  /// Removes the endpoint's file from /dev/shm; with hardware, gives the hardware back. Idempotent.
  void close();

  psm2_epid_t id() const { return id_; }
  psm2_mq_t queue() const { return queue_; }
  /// libpsm2 talks through shared memory only: no hardware, or not asked to use it.
  bool memory_only() const { return memory_only_; }
  /// The longest message that libpsm2 copies at once instead of asking the receiver.
  std::size_t eager_limit() const { return eager_limit_; }

  void progress() const { psm2_poll(handle_); }
  /// Connects to `peer`. Blocks until the peer's libpsm2 answers, up to two seconds (libpsm2 rounds shorter limits up):
  /// to be called when the peer is known to be inside libpsm2 (see meeting.hpp).
  psm2_error_t connect(psm2_epid_t peer, psm2_epaddr_t* address) const;
  /// The peer has connected to us (or we to it): its address, else null.
  psm2_epaddr_t find(psm2_epid_t peer) const;
  /// True if the two exchange through shared memory.
  bool shares_memory(psm2_epid_t peer) const;

 private:
  bool read_limits(std::string* reason);

  psm2_ep_t handle_ = nullptr;
  psm2_mq_t queue_ = nullptr;
  psm2_epid_t id_ = 0;
  bool memory_only_ = false;
  std::size_t eager_limit_ = 0;
};

/// Why libpsm2 cannot run here, from looking for its hardware only; "" if it may.
std::string why_not_here();

}  // namespace canele::drivers::psm2
