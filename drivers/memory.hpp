// SPDX-License-Identifier: BSD-3-Clause
//
// The contract of memory kinds: what an address is, how it is copied, exported to a peer, and pinned.
//
// The engine stages messages of device memory with it (comm/device). A kind includes this header and its own library's
// functions, and no other header of Canelé. Drivers do not know memory kinds: they get host memory only.
//
//   engine ──locate/begin_copy/poll/allocate_pinned/export/open──▶ Memory (one instance per engine and kind)
//
// Threading: any thread may make any call at any time, but no call may be made under the engine's lock: a call may
// enter the kernel. No call blocks until a copy has ended. Each call leaves the calling thread's context of the device
// as it has found it.
//
// An error is a sentence that names the device and the function that failed; "" is success.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace canele::drivers {

enum class MemoryKind : std::uint8_t { host, cuda, hip };

/// What is known of an address.
struct MemoryPlace {
  MemoryKind kind = MemoryKind::host;
  bool managed = false;          ///< the processor can touch it, too; it moves between host and device
  int device = 0;                ///< ordinal of the device
  void* context = nullptr;       ///< of the device memory; nullptr: that of the device
  std::uint64_t allocation = 0;  ///< differs for each allocation, also at a reused address
  std::byte* base = nullptr;     ///< of the whole allocation
  std::size_t size = 0;          ///< of the whole allocation, in bytes
};

/// `rows` rows of `width` bytes. The pitches are the distances between the beginnings of rows, in bytes; they do not
/// count for a single row.
struct MemoryCopy {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::size_t width = 0;
  std::size_t rows = 1;
  std::size_t to_pitch = 0;
  std::size_t from_pitch = 0;
};

/// within_devices: both ends are memory of devices; `place` is that of the destination.
enum class CopyDirection : std::uint8_t { to_host, to_device, within_devices };
enum class CopyState : std::uint8_t { pending, done, failed };

/// A group of copies under way. Made by begin_copy(), freed by the call of poll() that tells its end. Each kind derives
/// its own.
struct PendingCopy {};

/// Memory that another process of this host may open.
struct MemoryExport {
  std::byte handle[64] = {};
  std::byte device[16] = {};  ///< the device's UUID: ordinals differ between processes
  std::uint64_t offset = 0;   ///< of the exported address in its allocation, in bytes
  std::uint64_t size = 0;     ///< of the allocation, in bytes
  std::uint64_t allocation = 0;
};

class Memory {
 public:
  virtual ~Memory() = default;
  virtual MemoryKind kind() const = 0;
  /// Returns the name that errors and reports use, such as "CUDA".
  virtual std::string_view name() const = 0;
  /// Returns the number of devices.
  virtual int devices() const = 0;

  /// Returns whether the address is memory of this kind, and then fills *place. Pinned host memory is host memory.
  virtual bool locate(const void* address, MemoryPlace* place) = 0;

  /// Begins copies from or to memory at `place`, in order. Host memory must be pinned, or the call may block until the
  /// copy has ended. Errors come out of poll(). copied: an event of the program, to be recorded behind the copies;
  /// nullptr: none.
  virtual PendingCopy* begin_copy(const MemoryPlace& place, CopyDirection direction, std::span<const MemoryCopy> copies,
                                  void* copied) = 0;
  /// Returns whether the copies have ended. If they have, frees `pending`; failed: fills *error. Until then no memory
  /// that they use may be freed.
  virtual CopyState poll(PendingCopy* pending, std::string* error) = 0;

  /// Returns whether an event of the program has happened, which concerns memory at `place`; failed: fills *error.
  virtual CopyState poll_event(const MemoryPlace& place, void* event, std::string* error) = 0;

  /// Returns pinned host memory, or nullptr and *error.
  virtual std::byte* allocate_pinned(std::size_t size, std::string* error) = 0;
  virtual void free_pinned(std::byte* memory) = 0;
  /// Pins memory of the program. unpin() takes the same address.
  virtual std::string pin(void* memory, std::size_t size) = 0;
  virtual std::string unpin(void* memory) = 0;

  /// Makes the allocation at `address` known to other processes. An error: it cannot be exported (a memory pool,
  /// virtual memory, managed memory), and its messages have to be staged.
  virtual std::string export_memory(const void* address, MemoryExport* exported) = 0;
  /// Maps the memory that another process has exported, for copies by `device`. *address is that of the exported
  /// address. Fails if less is mapped than was exported, or if this pair of processes cannot share memory. Each open()
  /// needs one close().
  virtual std::string open(const MemoryExport& exported, int device, std::byte** address) = 0;
  virtual void close(std::byte* address) = 0;
};

/// When a library for a device is opened.
enum class DeviceLibrary : std::uint8_t {
  if_loaded,  ///< only if the process has it already
  load
};

/// Opens a kind. library: file name of its library; "": the usual one. Returns nullptr and *why if it cannot be used.
struct MemoryFactory {
  std::string_view name;
  MemoryKind kind;
  std::unique_ptr<Memory> (*open)(DeviceLibrary when, const std::string& library, std::string* why);
};

/// Makes one copy between addresses that the processor can touch.
inline void copy_by_processor(const MemoryCopy& copy) {
  for (std::size_t row = 0; row < copy.rows; ++row) {
    std::byte* const to = copy.to + row * copy.to_pitch;
    const std::byte* const from = copy.from + row * copy.from_pitch;
    if (copy.width != 0) std::memcpy(to, from, copy.width);
  }
}

}  // namespace canele::drivers
