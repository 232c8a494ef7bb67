// SPDX-License-Identifier: BSD-3-Clause
//
// Cross-memory attach: reads and writes another process's memory with process_vm_readv and process_vm_writev, with one
// copy and no registration.
//
// Used by the shm driver. Pure functions that make system calls; any number of threads may be in copy_remote() at once.
//
// A peer may have died, and its process id may name another process. So its nonce, at an address that it has told, was
// read at most proof_lasts_ns before each copy. A system gives a process id again only after all others, which takes
// longer.
//
// Rejected: the nonce in the same call, in front of the data. The kernel then looks one page more up for each copy.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "drivers/driver.hpp"

namespace canele::drivers::shm {

using Nonce = std::array<std::byte, 16>;

/// A process whose memory is read, and the proof that it is the right one.
struct RemoteProcess {
  pid_t pid = 0;  ///< as seen from this process; 0: not visible
  std::uint64_t nonce_address = 0;
  Nonce nonce = {};
};

/// How long a nonce that was read proves the process, in nanoseconds.
inline constexpr std::uint64_t proof_lasts_ns = 1'000'000;

/// An element of a MemoryKey.
struct RemotePiece {
  std::uint64_t address, length;
};
inline constexpr int most_remote_pieces = 15;

/// Returns true if the process can be read and has the expected nonce.
bool can_read(const RemoteProcess& process);

/// Returns true if a copy by the kernel takes more than twice as long as memcpy(): the kernel looks every page up.
/// Measures it with memory of this process, in less than 0.1 ms.
bool dearer_than_two_copies(DriverContext& clock);

/// Populates memory that has not been touched yet, such as a runtime allocates for each message. A copy into such
/// memory faults at every page, which is much slower than populating all pages in one call. The query is cheap but not
/// free, so it is made only after a copy that was slow or that had to populate pages. Any thread; a lost update only
/// costs time.
class FreshPages {
 public:
  /// Populates the pieces if needed. Call before a copy into them.
  void make(const iovec* pieces, int count) noexcept;
  /// Records the duration of the copy in nanoseconds.
  void copied(std::size_t size, std::uint64_t ns) noexcept {
    // Slower than 4 GB/s; then a query costs little beside the copy.
    if (ns > size / 4) expected_.store(true, std::memory_order_relaxed);
  }

 private:
  std::atomic<bool> expected_{true};
};

/// Describes `pieces` for readers. Returns false if there are more than most_remote_pieces.
bool write_rkey(const iovec* pieces, int count, MemoryKey* rkey);

/// Copies bytes [offset, offset + size) of the registered memory of `process` into `pieces` (get), or in the other
/// direction (put). The caller has proof of the process. Returns false if they are out of bounds, or the memory or the
/// process is gone; a part may have been copied then.
bool copy_remote(const RemoteProcess& process, RmaOp op, std::span<const std::byte> rkey, std::uint64_t offset,
                 const iovec* pieces, int count, std::size_t size);

}  // namespace canele::drivers::shm
