// SPDX-License-Identifier: BSD-3-Clause
#include "apps/sim/device_memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>
#include <utility>

#include "comm/device/devices.hpp"

namespace canele::sim {

using drivers::CopyDirection;
using drivers::CopyState;
using drivers::MemoryCopy;
using drivers::MemoryExport;

namespace {

constexpr std::byte hidden{0xd1}, unfinished{0xdb};

struct SimCopy : drivers::PendingCopy {
  std::vector<MemoryCopy> copies;
  std::uint64_t polls = 0;  ///< until it ends
  bool fails = false;
};

/// What the 64 bytes of a handle hold.
struct Handle {
  const std::byte* base;
  std::uint64_t number;
};
static_assert(sizeof(Handle) <= sizeof MemoryExport::handle);

}  // namespace

/// The devices of one rank.
class SimMemory final : public drivers::Memory {
 public:
  SimMemory(DeviceMemories& world, int rank) : world_(world), rank_(rank) {}

  drivers::MemoryKind kind() const override { return drivers::MemoryKind::cuda; }
  std::string_view name() const override { return "simulated"; }
  int devices() const override { return 1; }

  bool locate(const void* address, drivers::MemoryPlace* place) override {
    const std::byte* base = nullptr;
    const auto* const found = world_.find(static_cast<const std::byte*>(address), &base);
    if (found == nullptr || found->rank != rank_) return false;
    *place = {kind(), false, 0, nullptr, found->number, const_cast<std::byte*>(base), found->contents.size()};
    return true;
  }

  drivers::PendingCopy* begin_copy(const drivers::MemoryPlace&, CopyDirection direction,
                                   std::span<const MemoryCopy> copies, void*) override {
    auto made = std::make_unique<SimCopy>();
    made->copies.assign(copies.begin(), copies.end());
    made->polls = world_.dice_.under(world_.dice_.under(8) == 0 ? 400 : 6);  // some last longer than a clear to send
    made->fails = direction == CopyDirection::within_devices && world_.dice_.under(16) == 0;
    for (const MemoryCopy& one : copies) {
      for (std::size_t row = 0; row < one.rows; ++row)
        std::memset(world_.contents_of(one.to + row * one.to_pitch), static_cast<int>(unfinished), one.width);
    }
    return made.release();
  }

  CopyState poll(drivers::PendingCopy* pending, std::string* error) override {
    auto& copy = *static_cast<SimCopy*>(pending);
    if (copy.polls-- > 0) return CopyState::pending;
    const std::unique_ptr<SimCopy> ended(&copy);
    *error = copy.fails ? "the dice have failed a copy" : "";
    if (copy.fails) return CopyState::failed;
    for (const MemoryCopy& one : copy.copies) {
      for (std::size_t row = 0; row < one.rows; ++row) {
        const std::byte* const from = world_.contents_of(const_cast<std::byte*>(one.from) + row * one.from_pitch);
        std::memcpy(world_.contents_of(one.to + row * one.to_pitch), from, one.width);
      }
    }
    return CopyState::done;
  }

  CopyState poll_event(const drivers::MemoryPlace&, void*, std::string*) override { return CopyState::done; }

  std::byte* allocate_pinned(std::size_t size, std::string*) override {
    return static_cast<std::byte*>(std::malloc(std::max<std::size_t>(size, 1)));
  }
  void free_pinned(std::byte* memory) override { std::free(memory); }
  std::string pin(void*, std::size_t) override { return ""; }
  std::string unpin(void*) override { return ""; }

  std::string export_memory(const void* address, MemoryExport* exported) override {
    const std::byte* base = nullptr;
    const auto* const found = world_.find(static_cast<const std::byte*>(address), &base);
    if (found == nullptr || world_.dice_.under(8) == 0) return "the dice have refused an export";
    const Handle handle{base, found->number};
    std::memcpy(exported->handle, &handle, sizeof handle);
    exported->offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - base);
    exported->size = found->contents.size();
    exported->allocation = found->number;
    return "";
  }
  std::string open(const MemoryExport& exported, int, std::byte** address) override {
    Handle handle{};
    std::memcpy(&handle, exported.handle, sizeof handle);
    const std::byte* base = nullptr;
    const auto* const found = world_.find(handle.base, &base);
    if (found == nullptr || found->number != handle.number || world_.dice_.under(8) == 0)
      return "the dice have refused a mapping, or the memory is gone";
    *address = const_cast<std::byte*>(base) + exported.offset;
    return "";
  }
  void close(std::byte*) override {}

 private:
  DeviceMemories& world_;
  const int rank_;
};

void DeviceMemories::use(int rank, canele_engine_t* engine) {
  comm::device::use(comm::engine_of(engine), std::make_unique<SimMemory>(*this, rank));
}

void DeviceMemories::give(int rank, std::vector<std::byte>& bytes) {
  if (bytes.empty() || dice_.under(3) == 0) return;
  memory_[bytes.data()] = {rank, ++allocations_, bytes};
  std::fill(bytes.begin(), bytes.end(), hidden);
}

void DeviceMemories::take(std::vector<std::byte>& bytes) {
  const auto found = memory_.find(bytes.data());
  if (found == memory_.end()) return;
  if (!std::all_of(bytes.begin(), bytes.end(), [](std::byte one) { return one == hidden; }))
    complain("the processor has written to memory of a device");
  bytes = std::move(found->second.contents);
  memory_.erase(found);
}

DeviceMemories::Allocation* DeviceMemories::find(const std::byte* address, const std::byte** base) {
  auto after = memory_.upper_bound(address);
  if (after == memory_.begin()) return nullptr;
  --after;
  if (address >= after->first + after->second.contents.size()) return nullptr;
  *base = after->first;
  return &after->second;
}

std::byte* DeviceMemories::contents_of(std::byte* address) {
  const std::byte* base = nullptr;
  Allocation* const found = find(address, &base);
  return found != nullptr ? found->contents.data() + (address - base) : address;
}

}  // namespace canele::sim
