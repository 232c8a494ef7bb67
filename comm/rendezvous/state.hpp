// SPDX-License-Identifier: BSD-3-Clause
//
// What an engine keeps of large messages: copies under way, and buffered sends.
//
// Used under the engine's lock, by any thread, unless a comment says otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/state/context.hpp"

namespace canele::comm {

namespace deposit {
struct Deposit;
}

namespace rendezvous {

struct PulledOp : Op {};

/// One message that is being copied out of a peer's memory, or into it. Pooled.
struct Pull : InFlight, PulledOp, ltask::Task {
  Context* context = nullptr;
  Request* request = nullptr;
  Peer* peer = nullptr;
  drivers::Driver* driver = nullptr;
  std::uint64_t handle = 0;  ///< of the send
  std::uint64_t want = 0, offset = 0;
  bool queued = false;  ///< in DriverSlot::pulls
  int outstanding = 0;  ///< pieces that the driver is fetching; see async_get.hpp
  drivers::Exposure exposure;
  drivers::Status status = drivers::Status::ok;
  Pull* next_free = nullptr;

  // Shared copies only. `handle` is then the peer's name for its end.
  Claims claims;
  drivers::Access access = drivers::Access::get;
  std::uint64_t own = 0;  ///< our name for our end
  bool last = false;      ///< this end has ended the last chunk of all
};

struct State {
  std::uint64_t pulls = 0;  ///< copies under way
  Pull* free_pulls = nullptr;
  std::vector<std::unique_ptr<Pull>> all_pulls;
  std::vector<Pull*> deferred;           ///< copies that begin with the next progress call.
  deposit::Deposit* deposits = nullptr;  ///< buffered sends, a subset of the pending sends that no thread waits for.
  std::atomic<std::uint32_t> deposit_count = 0;  ///< changed under the lock, read by any thread.
};

}  // namespace rendezvous
}  // namespace canele::comm
