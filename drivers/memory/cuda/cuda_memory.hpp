// SPDX-License-Identifier: BSD-3-Clause
//
// CudaMemory: what one engine keeps of the CUDA devices.
//
//   CudaMemory ──▶ Lane (one per context): two streams, spare records of copies
//        └───────▶ Import (one per handle of another process): address, number of opens
//
// Streams and events fail under any context but their own, so they belong to a lane. The streams are non-blocking: on
// the default stream a copy could wait for a kernel that waits for the message.
//
// Threading: any thread. `mutex_` guards the tables; streams and events are used without it.
//
// Pitfalls: nothing calls the driver in a destructor that may run at exit. release() does, when the engine ends; errors
// there mean that the driver or the context has gone before.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "drivers/memory.hpp"
#include "drivers/memory/cuda/cuda_library.hpp"

namespace canele::drivers::cuda {

/// A group of copies, and the event behind them.
struct CudaCopy : PendingCopy {
  Event event = nullptr;
  struct Lane* lane = nullptr;
  bool recorded = false;  ///< the event is behind the copies
  std::string error;      ///< why some copies were not begun
};

/// What copies in one context need.
struct Lane {
  Context context = nullptr;
  int device = 0;
  Stream streams[3] = {};  ///< by CopyDirection
  std::vector<std::unique_ptr<CudaCopy>> spare;
};

class CudaMemory final : public Memory {
 public:
  explicit CudaMemory(const Functions& functions);
  ~CudaMemory() override;

  MemoryKind kind() const override { return MemoryKind::cuda; }
  std::string_view name() const override { return "CUDA"; }
  int devices() const override { return devices_; }
  bool locate(const void* address, MemoryPlace* place) override;
  PendingCopy* begin_copy(const MemoryPlace& place, CopyDirection direction, std::span<const MemoryCopy> copies,
                          void* copied) override;
  CopyState poll(PendingCopy* pending, std::string* error) override;
  CopyState poll_event(const MemoryPlace& place, void* event, std::string* error) override;
  std::byte* allocate_pinned(std::size_t size, std::string* error) override;
  void free_pinned(std::byte* memory) override;
  std::string pin(void* memory, std::size_t size) override;
  std::string unpin(void* memory) override;
  std::string export_memory(const void* address, MemoryExport* exported) override;
  std::string open(const MemoryExport& exported, int device, std::byte** address) override;
  void close(std::byte* address) override;

 private:
  /// Memory of another process that is mapped here.
  struct Import {
    std::byte* base;
    Context context;
    int opens;
  };

  using Imports = std::map<std::string, Import>;  ///< by the bytes of the handle

  std::string fault(int device, const char* call, Result result) const;
  Context primary_of(int device, std::string* error);
  Context any_context(std::string* error);
  Lane* lane_of(const MemoryPlace& place, std::string* error);
  std::unique_ptr<Lane> make_lane(Context context, int device, std::string* error);
  std::unique_ptr<CudaCopy> copy_record_of(Lane* lane, std::string* error);
  Result begin(const Lane& lane, CopyDirection direction, std::span<const MemoryCopy> copies, void* copied,
               const char** call);
  void give_back(std::unique_ptr<CudaCopy> pending);
  void unmap(Imports::iterator import);
  void release();

  const Functions functions_;
  int devices_ = 0;
  std::mutex mutex_;
  std::map<int, Context> primaries_;
  std::map<Context, std::unique_ptr<Lane>> lanes_;
  Imports imports_;
};

}  // namespace canele::drivers::cuda
