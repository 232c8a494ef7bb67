// SPDX-License-Identifier: BSD-3-Clause
//
// Parked: endpoints of the shm provider that are closed, but may not go while others of this process are open.
//
// Who: the ofi driver. Threads: any (instances of one process are closed by different threads).
// Surprise: shm 1.17 gives endpoints of one process each other's memory without counting who uses it. Who sends to one
//      that has been closed crashes, and so does who closes after it. So all of a process are closed together, with the
//      last one. A process with one instance (all but tests) notices nothing.
//
//   closed instances ──▶ [ Parked | Parked | … ]   freed when `open` falls to 0
#pragma once

#include <memory>

#include "drivers/ofi/buffers.hpp"
#include "drivers/ofi/endpoint.hpp"

namespace canele::drivers::ofi {

/// What must live as long as an endpoint; destroyed from the last member to the first.
struct Parked {
  std::unique_ptr<Endpoint> endpoint;
  std::unique_ptr<SendPool> pool;
  std::unique_ptr<ReceiveBuffers> receive;
};

/// An instance of the shm provider has been opened.
void enter_process();
/// And is closed: its parts are freed now or later.
void leave_process(Parked parts);
/// Closes the endpoint, then frees the rest.
void close_parts(Parked& parts);

}  // namespace canele::drivers::ofi
