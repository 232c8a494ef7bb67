// SPDX-License-Identifier: BSD-3-Clause
//
// Shelf: memory of this process that all peers map for reading. A message for several of them is put there once, and
// each copies it out by itself.
//
// Who: the shm driver. Threads: any.
// Surprise: it is memory only as far as it was ever used: the file has room for all of it, its pages are asked for
//     before the first store, so that running out of memory is an answer here and not a SIGBUS.
//
//     the ParkPage's memfd:   | ParkPage | unit 0 | unit 1 | … | unit 63 |     taken_: a bit for each
//
// Rejected: the kernel reads the message out of our memory for each peer (process_vm_readv looks up every page every
//     time: 4.8 instead of 0.7 us for 64 KiB, 76 instead of 19 for 1 MiB); through each peer's ring (two copies a peer,
//     and where ranks share cores a switch for each 48 KiB).
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <span>

#include "drivers/driver.hpp"
#include "drivers/shm/area.hpp"

namespace canele::drivers::shm {

class Shelf {
 public:
  static constexpr std::size_t unit = 128 * 1024, units = 64, size = unit * units;
  /// Of the memfd.
  static constexpr std::size_t file_size = sizeof(ParkPage) + size;
  /// One message leaves room for others.
  static constexpr std::size_t longest = size / 2;

  /// `file`: the mapping of all of the memfd, which outlives this.
  void attach(std::byte* file, int memfd) { own_ = file + sizeof(ParkPage), memfd_ = memfd; }
  void detach() { own_ = nullptr; }

  /// Copies the pieces there. false: no room, or no memory. Else *exposure is for all peers, and its handle for
  /// release().
  bool put(const iovec* pieces, int count, Exposure* exposure);
  void release(std::uint64_t handle);

  static bool is_named_by(std::span<const std::byte> exposure);
  /// Copies bytes [offset, offset + size) of what the exposure names out of a peer's `file`. false: out of bounds.
  static bool copy_out(const std::byte* file, std::span<const std::byte> exposure, std::uint64_t offset,
                       const iovec* pieces, int count, std::size_t size);

 private:
  /// So many units in a row. `units`: there are none.
  std::size_t take(std::size_t count);
  bool has_memory(std::size_t bytes);

  std::byte* own_ = nullptr;
  int memfd_ = -1;
  std::atomic<std::uint64_t> taken_{0};
  std::atomic<std::size_t> backed_{0};  ///< bytes that have memory, from the start on
  std::mutex growth_;
};

}  // namespace canele::drivers::shm
