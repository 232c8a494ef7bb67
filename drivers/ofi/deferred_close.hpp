// SPDX-License-Identifier: BSD-3-Clause
//
// DeferredClose: closed endpoints of the shm provider, which must not be freed while others of this process are open.
//
// Used by the ofi driver. Any thread: different threads close the instances of one process.
//
// shm 1.17 gives endpoints of one process each other's memory without counting the users. An endpoint that sends to a
// closed one crashes, and so does one that closes after it. All endpoints of a process are therefore freed together,
// with the last one. A process with one instance (all but tests) is not affected.
//
//   closed instances ──▶ [ DeferredClose | DeferredClose | … ]   freed when `open` falls to 0
#pragma once

#include <memory>

#include "drivers/ofi/buffers.hpp"
#include "drivers/ofi/endpoint.hpp"

namespace canele::drivers::ofi {

/// What must live as long as an endpoint; destroyed from the last member to the first.
struct DeferredClose {
  std::unique_ptr<Endpoint> endpoint;
  std::unique_ptr<SendPool> pool;
  std::unique_ptr<ReceiveBuffers> receive;
};

/// Records that an instance of the shm provider has been opened.
void note_opened();
/// Records that an instance is closed: its parts are freed now or later.
void close_or_defer(DeferredClose parts);
/// Closes the endpoint, then frees the rest.
void close_parts(DeferredClose& parts);

}  // namespace canele::drivers::ofi
