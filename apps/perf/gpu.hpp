// SPDX-License-Identifier: BSD-3-Clause
//
// Gpu: what the benchmarks need of the first CUDA device, without the engine: memory, copies that are waited for, and
// memory of the other rank.
//
// The driver's library is opened at run time; the build needs no CUDA. One thread; its context stays current. All
// functions throw std::runtime_error, which names the call and its error.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

namespace canele::perf {

/// Where a rank has its messages.
enum class MemoryKind { host, device, managed };
const char* name_of(MemoryKind kind);

class Gpu {
 public:
  using Handle = std::array<char, 64>;

  /// Opens the device for this process. Returns the same object to each caller.
  static Gpu& get();

  /// Allocates memory of the device, or managed memory. free() frees it.
  std::byte* allocate(MemoryKind kind, std::size_t size);
  void free(std::byte* memory);
  /// Allocates pinned host memory, which stays until the process ends.
  std::byte* allocate_pinned(std::size_t size);
  /// Queues a copy between any of these kinds.
  void copy(std::byte* to, const std::byte* from, std::size_t size);
  /// Waits for all copies that are queued.
  void wait();

  /// Exports memory for open() in another process.
  Handle export_memory(const std::byte* memory);
  /// Maps exported memory. Returns nullptr if the driver refuses.
  std::byte* open(const Handle& handle);

  ~Gpu();

 private:
  struct Api;
  Gpu();

  std::unique_ptr<Api> api_;
};

/// Memory of the messages of one rank.
class MessageMemory {
 public:
  MessageMemory(MemoryKind kind, std::size_t size);

  std::byte* data() { return data_.get(); }

 private:
  struct Free {
    MemoryKind kind;
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte, Free> data_;
};

}  // namespace canele::perf
