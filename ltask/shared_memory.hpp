// SPDX-License-Identifier: BSD-3-Clause
//
// Memory of a process that other processes of its host can map.
//
// The memory has no name in a file system: another process of the same user finds it by the numbers of the process and
// of its descriptor (Linux: /proc/PID/fd). It lives until the last process has unmapped it.
//
// One thread at a time uses an object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace canele {

/// By what other processes find the memory.
struct SharedMemoryName {
  std::uint64_t host = 0;  ///< identifies the host and its table of processes; 0: no other process can map the memory
  std::int32_t process = 0, descriptor = -1;
};

/// Owns a mapping.
class SharedMemory {
 public:
  virtual ~SharedMemory() = default;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  std::byte* base() const { return base_; }
  const SharedMemoryName& name() const { return name_; }

 protected:
  SharedMemory(std::byte* base, const SharedMemoryName& name) : base_(base), name_(name) {}

 private:
  std::byte* base_;
  SharedMemoryName name_;
};

/// Allocates `size` zero bytes, with memory behind all of them. Returns nullptr and sets *why if there are none.
std::unique_ptr<SharedMemory> share_posix_memory(std::size_t size, std::string* why);
/// Maps memory of another process, or of this one. Returns nullptr if it cannot be mapped: the process is on another
/// host or has ended, or the descriptor is no sealed memory of `size` bytes.
std::unique_ptr<SharedMemory> map_posix_memory(const SharedMemoryName& name, std::size_t size);

}  // namespace canele
