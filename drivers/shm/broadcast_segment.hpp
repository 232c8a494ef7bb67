// SPDX-License-Identifier: BSD-3-Clause
//
// BroadcastSegment: memory of this process that all peers map for reading. A message for several peers is written there
// once, and each peer copies it out by itself.
//
// Used by the shm driver. Any thread may call it.
//
//     the SleepPage's memfd:   | SleepPage | unit 0 | unit 1 | … | unit 63 |     taken_: a bit for each
//
// The file has room for the whole segment, but has memory only for the part that was ever used. Pages are allocated
// before the first store, so that running out of memory is an error here and not a SIGBUS.
//
// Rejected: the kernel reads the message out of this process's memory for each peer (process_vm_readv looks up every
// page every time; measured: several times slower). Rejected: each peer's ring (two copies a peer, and a context switch
// for each few pieces where ranks share cores).
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <span>

#include "drivers/driver.hpp"
#include "drivers/shm/channel.hpp"

namespace canele::drivers::shm {

class BroadcastSegment {
 public:
  static constexpr std::size_t unit = 128 * 1024, units = 64, size = unit * units;
  /// Size of the memfd.
  static constexpr std::size_t file_size = sizeof(SleepPage) + size;
  /// Longest message, so that it leaves room for others.
  static constexpr std::size_t longest = size / 2;

  /// Attaches to `file`, the mapping of the whole memfd, which outlives this object.
  void attach(std::byte* file, int memfd) { own_ = file + sizeof(SleepPage), memfd_ = memfd; }
  void detach() { own_ = nullptr; }

  /// Copies the pieces to the segment. Returns false if there is no room, or no memory. Otherwise *rkey is for all
  /// peers, and its handle is for release().
  bool put(const iovec* pieces, int count, MemoryKey* rkey);
  void release(std::uint64_t handle);

  static bool is_named_by(std::span<const std::byte> rkey);
  /// Copies bytes [offset, offset + size) of what the rkey names out of a peer's `file`. Returns false if they are
  /// out of bounds.
  static bool copy_out(const std::byte* file, std::span<const std::byte> rkey, std::uint64_t offset,
                       const iovec* pieces, int count, std::size_t size);

 private:
  /// Takes `count` consecutive units and returns the first; `units`: there are none.
  std::size_t take(std::size_t count);
  bool has_memory(std::size_t bytes);

  std::byte* own_ = nullptr;
  int memfd_ = -1;
  std::atomic<std::uint64_t> taken_{0};
  std::atomic<std::size_t> backed_{0};  ///< bytes that have memory, from the start on
  std::mutex growth_;
};

}  // namespace canele::drivers::shm
