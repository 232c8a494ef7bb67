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
#include "comm/state/under_lock.hpp"

namespace canele::comm {

namespace buffered {
struct BufferedSend;
}

namespace rendezvous {

struct TransferDoneOp : Op {};

/// One message that is being copied out of a peer's memory, or into it. Pooled.
struct RmaCopy : DriverToken, TransferDoneOp, ltask::Task {
  Context* context = nullptr;
  Request* request = nullptr;
  Peer* peer = nullptr;
  drivers::Driver* driver = nullptr;
  Handle handle = Handle::none;  ///< of the send
  std::uint64_t want = 0, offset = 0;
  bool queued = false;  ///< in DriverInstance::gets
  int outstanding = 0;  ///< pieces that the driver is fetching; see async_get.hpp
  drivers::MemoryKey rkey;
  drivers::Status status = drivers::Status::ok;
  CopyCosts* costs = nullptr;   ///< where the cost of this copy is noted; nullptr: nowhere
  std::uint64_t copied_ns = 0;  ///< duration of the copies so far, in nanoseconds, if it is noted
  RmaCopy* next_free = nullptr;

  /// Notes what this end's copies have cost, if they have all succeeded.
  void note_cost() CANELE_UNDER_LOCK {
    if (costs != nullptr && status == drivers::Status::ok) costs->kernel_copied(want, offset, copied_ns);
  }

  // Shared copies only. `handle` is then the peer's name for its end.
  ChunkClaims claims;
  drivers::RmaOp op = drivers::RmaOp::get;
  Handle own = Handle::none;  ///< our name for our end
  bool last = false;          ///< this end has ended the last chunk of all
  bool gives_way = false;     ///< this end has receives of its own to copy first
  bool exchanges = false;     ///< both ends have a receive to copy, as far as this end knows
};

/// Adds the time of its scope to the duration of a copy, if that is noted. Any thread, without the engine's lock.
class CopyTimer {
 public:
  explicit CopyTimer(RmaCopy& copy) : copy_(copy), begin_(copy.costs != nullptr ? now() : 0) {}
  CopyTimer(const CopyTimer&) = delete;
  CopyTimer& operator=(const CopyTimer&) = delete;
  ~CopyTimer() {
    if (copy_.costs != nullptr) copy_.copied_ns += now() - begin_;
  }

 private:
  std::uint64_t now() const { return copy_.context->platform.now_ns(); }

  RmaCopy& copy_;
  const std::uint64_t begin_;
};

struct State {
  std::uint64_t active_copies CANELE_LOCKED = 0;  ///< copies under way
  RmaCopy* free_copies CANELE_LOCKED = nullptr;
  std::vector<std::unique_ptr<RmaCopy>> all_copies CANELE_LOCKED;
  std::vector<RmaCopy*> deferred_copies CANELE_LOCKED;  ///< copies that begin with the next progress call.
  RmaCopy* paused_copies CANELE_LOCKED = nullptr;  ///< of sends, which give way to copies of receives; by next_free
  std::atomic<std::uint32_t> shared_receives = 0;  ///< receives whose chunks this end copies; changed under the lock.
  buffered::BufferedSend* buffered_sends CANELE_LOCKED =
      nullptr;  ///< buffered sends, a subset of the pending sends that no thread waits for.
  std::atomic<std::uint32_t> buffered_count = 0;  ///< changed under the lock, read by any thread.
};

}  // namespace rendezvous
}  // namespace canele::comm
