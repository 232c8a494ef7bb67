// SPDX-License-Identifier: BSD-3-Clause
//
// Host memory: the processor copies at once, and each process can read its own memory only.
#include "drivers/memory/host/host.hpp"

#include <cstdlib>

namespace canele::drivers {

namespace {

class HostMemory final : public Memory {
 public:
  MemoryKind kind() const override { return MemoryKind::host; }
  std::string_view name() const override { return "host"; }
  int devices() const override { return 0; }

  bool locate(const void*, MemoryPlace* place) override {
    *place = {};
    return true;
  }

  PendingCopy* begin_copy(const MemoryPlace&, CopyDirection, std::span<const MemoryCopy> copies,
                          void* copied) override {
    for (const MemoryCopy& one : copies) {
      if (copied == nullptr) copy_by_processor(one);
    }
    return copied != nullptr ? &rejected_ : &made_;
  }
  CopyState poll(PendingCopy* pending, std::string* error) override {
    if (pending == &made_) return CopyState::done;
    return poll_event({}, nullptr, error);
  }
  CopyState poll_event(const MemoryPlace&, void*, std::string* error) override {
    *error = "host memory has no events of a device";
    return CopyState::failed;
  }

  std::byte* allocate_pinned(std::size_t size, std::string* error) override {
    auto* const memory = static_cast<std::byte*>(std::malloc(size != 0 ? size : 1));
    if (memory == nullptr) *error = "there is no host memory for " + std::to_string(size) + " bytes";
    return memory;
  }
  void free_pinned(std::byte* memory) override { std::free(memory); }
  std::string pin(void*, std::size_t) override { return ""; }
  std::string unpin(void*) override { return ""; }

  std::string export_memory(const void*, MemoryExport*) override { return "the drivers export host memory"; }
  std::string open(const MemoryExport&, int, std::byte**) override { return "the drivers import host memory"; }
  void close(std::byte*) override {}

 private:
  PendingCopy made_, rejected_;
};

std::unique_ptr<Memory> open_host_memory(DeviceLibrary, const std::string&, std::string*) {
  return std::make_unique<HostMemory>();
}

}  // namespace

const MemoryFactory host_memory_factory{"host", MemoryKind::host, open_host_memory};

}  // namespace canele::drivers
