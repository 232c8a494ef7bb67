// SPDX-License-Identifier: BSD-3-Clause
//
// Cross-memory attach: reading and writing another process's memory with process_vm_readv and process_vm_writev, one
// copy and no registration.
//
// Who: the shm driver. Threads: pure functions; copy_remote() by any number of threads at once. They make system calls.
// Surprise: each read fetches the peer's nonce together with the data. If the peer has died and its process id names
//      somebody else now, the nonce does not fit: no pidfd is needed to tell. A write looks at the nonce first; a
//      process id would have to be given again between the two calls.
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

/// A process whose memory we read, and the proof that it is the right one.
struct RemoteProcess {
  pid_t pid = 0;  ///< as seen from here; 0: not visible
  std::uint64_t nonce_address = 0;
  Nonce nonce = {};
};

/// What an Exposure holds.
struct ExposedPiece {
  std::uint64_t address, length;
};
inline constexpr int max_exposed_pieces = 15;

/// True if the process can be read and is the one that it says.
bool can_read(const RemoteProcess& process);

/// True if the kernel takes more than twice as long to copy here as memcpy() does: it looks every page up. Tried out,
/// with memory of our own, in less than 0.1 ms.
bool dearer_than_two_copies(DriverContext& clock);

/// Memory that nobody has touched yet, as a runtime allocates it for each message: a copy into it stops at every page,
/// which takes three times as long as having them all made in one call (0.8 us more a page). To ask costs little, but
/// more than nothing, so it is asked only after a copy that was slow or had to ask for pages. Any thread; a lost note
/// costs time.
class FreshPages {
 public:
  /// Before a copy into these pieces.
  void make(const iovec* pieces, int count) noexcept;
  /// After it: how long it took.
  void copied(std::size_t size, std::uint64_t ns) noexcept {
    if (ns > size / 4) expected_.store(true, std::memory_order_relaxed);  // 4 GB/s: a question costs less than 2 %
  }

 private:
  std::atomic<bool> expected_{true};
};

/// Describes `pieces` for readers. false: more than max_exposed_pieces.
bool write_exposure(const iovec* pieces, int count, Exposure* exposure);

/// Copies bytes [offset, offset + size) of the exposed memory of `process` into `pieces` (get) or the other way (put).
/// false: out of bounds, or the memory or the process is gone; a part may then be copied.
bool copy_remote(const RemoteProcess& process, Access access, std::span<const std::byte> exposure, std::uint64_t offset,
                 const iovec* pieces, int count, std::size_t size);

}  // namespace canele::drivers::shm
