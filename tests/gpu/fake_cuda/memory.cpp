// SPDX-License-Identifier: BSD-3-Clause
//
// Memory of the fake driver: device memory of each kind, pinned host memory, attributes of pointers, exports.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "tests/gpu/fake_cuda/fake.hpp"

namespace canele::fake_cuda {
namespace {

std::size_t whole_pages(std::size_t size) { return (size + 4095) & ~std::size_t{4095}; }

/// What the 64 bytes of an IPC handle hold.
struct Exported {
  char magic[8];
  std::int32_t process, memfd;
  std::uint64_t id, size, inode;
  std::int32_t device, unused;
};
static_assert(sizeof(Exported) <= sizeof(IpcHandle));
constexpr char magic_of_handles[8] = {'f', 'a', 'k', 'e', 'c', 'u', 'd', 'a'};

std::uint64_t inode_of(int descriptor) {
  struct stat what {};
  return fstat(descriptor, &what) == 0 ? what.st_ino : 0;
}

void* map_pages(int memfd, std::size_t size, int rights, void* address) {
  const int flags = MAP_SHARED | (address != nullptr ? MAP_FIXED : 0);
  void* const memory = mmap(address, size, rights, flags, memfd, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

Allocation* Fake::find(DevicePtr pointer) {
  auto next = memory.upper_bound(pointer);
  if (next == memory.begin()) return nullptr;
  Allocation* const one = std::prev(next)->second.get();
  return pointer - reinterpret_cast<std::uintptr_t>(one->view) < one->size ? one : nullptr;
}

bool Fake::is_pinned(DevicePtr pointer) const {
  auto next = pinned.upper_bound(pointer);
  if (next == pinned.begin()) return false;
  const auto& [start, what] = *std::prev(next);
  return pointer - start < what.size;
}

Allocation* map_memory(Fake& state, Kind kind, int memfd, std::size_t size, void* address) {
  auto one = std::make_unique<Allocation>();
  one->kind = kind;
  one->memfd = memfd;
  one->size = size;
  one->mapped = whole_pages(size);
  const int rights = kind == Kind::managed ? PROT_READ | PROT_WRITE : PROT_NONE;
  one->view = static_cast<std::byte*>(map_pages(memfd, one->mapped, rights, address));
  one->alias = static_cast<std::byte*>(map_pages(memfd, one->mapped, PROT_READ | PROT_WRITE, nullptr));
  if (one->view == nullptr || one->alias == nullptr) return nullptr;
  one->id = (std::uint64_t{static_cast<std::uint32_t>(getpid())} << 32) + state.next_id++;
  Allocation* const made = one.get();
  state.memory[reinterpret_cast<std::uintptr_t>(made->view)] = std::move(one);
  return made;
}

Allocation* allocate(Fake& state, Kind kind, int device, Context context, std::size_t size) {
  auto& of = state.devices[static_cast<std::size_t>(device)];
  if (state.memory_limit != 0 && of.used + size > state.memory_limit) return nullptr;
  const int memfd = memfd_create("fake device memory", MFD_CLOEXEC);
  if (memfd < 0 || ftruncate(memfd, static_cast<off_t>(whole_pages(size))) != 0) return nullptr;
  Allocation* const one = map_memory(state, kind, memfd, size, nullptr);
  if (one == nullptr) return nullptr;
  one->device = device;
  one->context = context;
  of.used += size;
  std::memset(one->alias, poison, one->mapped);
  return one;
}

Result release(Fake& state, DevicePtr pointer) {
  const auto found = state.memory.find(pointer);
  if (found == state.memory.end()) return invalid_value;
  const Allocation& one = *found->second;
  if (one.copies != 0) violation("device memory is freed while a copy uses it");
  munmap(one.view, one.mapped);
  munmap(one.alias, one.mapped);
  if (one.kind != Kind::virtual_memory) close(one.memfd);
  if (one.kind != Kind::imported && one.kind != Kind::virtual_memory)
    state.devices[static_cast<std::size_t>(one.device)].used -= one.size;
  state.memory.erase(found);
  return success;
}

namespace {

Result make(Call& call, Kind kind, Context context, DevicePtr* pointer, std::size_t size) {
  if (call.result != success) return call.result;
  if (size == 0) return invalid_value;
  const Allocation* const one = allocate(call.state, kind, call.context->device, context, size);
  if (one == nullptr) return out_of_memory;
  *pointer = reinterpret_cast<DevicePtr>(one->view);
  return success;
}

/// Writes one attribute of a pointer; zero if the pointer is unknown, as the real call does.
Result write_attribute(Fake& state, const Allocation* one, DevicePtr pointer, int which, void* value) {
  const bool pinned = one == nullptr && state.is_pinned(pointer);
  switch (which) {
    case attribute_context:
      *static_cast<Context*>(value) = one != nullptr ? one->context : nullptr;
      return success;
    case attribute_memory_type:
      *static_cast<unsigned*>(value) = one != nullptr ? type_device : pinned ? type_host : type_none;
      return success;
    case attribute_buffer_id:
      *static_cast<std::uint64_t*>(value) = one != nullptr ? one->id : 0;
      return success;
    case attribute_is_managed:
      *static_cast<unsigned*>(value) = one != nullptr && one->kind == Kind::managed ? 1 : 0;
      return success;
    case attribute_device_ordinal:
      *static_cast<int*>(value) = one != nullptr ? one->device : -2;
      return success;
    case attribute_range_start:
      *static_cast<DevicePtr*>(value) = one != nullptr ? reinterpret_cast<DevicePtr>(one->view) : 0;
      return success;
    case attribute_range_size:
      *static_cast<std::size_t*>(value) = one != nullptr ? one->size : 0;
      return success;
    default:
      return invalid_value;
  }
}

Result register_pages(Fake& state, void* memory, std::size_t size, bool owned) {
  const auto start = reinterpret_cast<std::uintptr_t>(memory);
  if (state.is_pinned(start) || state.is_pinned(start + size - 1)) return 712;  // HOST_MEMORY_ALREADY_REGISTERED
  if (state.pinned_limit != 0 && state.pinned_bytes + size > state.pinned_limit) return out_of_memory;
  state.pinned_bytes += size;
  state.pinned[start] = {size, owned};
  return success;
}

}  // namespace
}  // namespace canele::fake_cuda

using namespace canele::fake_cuda;

CANELE_FAKE_API Result cuMemAlloc_v2(DevicePtr* pointer, std::size_t size) {
  Call call("cuMemAlloc_v2");
  return make(call, Kind::plain, call.context, pointer, size);
}

CANELE_FAKE_API Result cuMemAllocManaged(DevicePtr* pointer, std::size_t size, unsigned) {
  Call call("cuMemAllocManaged");
  return make(call, Kind::managed, call.context, pointer, size);
}

CANELE_FAKE_API Result cuMemAllocAsync(DevicePtr* pointer, std::size_t size, Stream) {
  Call call("cuMemAllocAsync");
  return make(call, Kind::pool, nullptr, pointer, size);
}

CANELE_FAKE_API Result cuMemFree_v2(DevicePtr pointer) {
  const Call call("cuMemFree_v2");
  if (call.result != success) return call.result;
  return pointer == 0 ? success : release(call.state, pointer);
}

CANELE_FAKE_API Result cuMemFreeAsync(DevicePtr pointer, Stream stream) {
  Call call("cuMemFreeAsync");
  if (call.result != success) return call.result;
  drain(call.state, call.lock, stream);
  return release(call.state, pointer);
}

CANELE_FAKE_API Result cuMemCreate(AllocationHandle* handle, std::size_t size, const AllocationProperties* properties,
                                   unsigned long long) {
  const Call call("cuMemCreate");
  if (call.result != success) return call.result;
  const int memfd = memfd_create("fake physical memory", MFD_CLOEXEC);
  if (memfd < 0 || ftruncate(memfd, static_cast<off_t>(size)) != 0) return out_of_memory;
  *handle = call.state.next_id++;
  call.state.physical[*handle] = {properties->location.id, memfd, size};
  return success;
}

CANELE_FAKE_API Result cuMemRelease(AllocationHandle handle) {
  const Call call("cuMemRelease");
  if (call.result != success) return call.result;
  const auto found = call.state.physical.find(handle);
  if (found == call.state.physical.end()) return invalid_value;
  close(found->second.memfd);
  call.state.physical.erase(found);
  return success;
}

CANELE_FAKE_API Result cuMemAddressReserve(DevicePtr* pointer, std::size_t size, std::size_t, DevicePtr,
                                           unsigned long long) {
  const Call call("cuMemAddressReserve");
  if (call.result != success) return call.result;
  void* const range = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return out_of_memory;
  *pointer = reinterpret_cast<DevicePtr>(range);
  call.state.reserved[*pointer] = size;
  return success;
}

CANELE_FAKE_API Result cuMemAddressFree(DevicePtr pointer, std::size_t size) {
  const Call call("cuMemAddressFree");
  if (call.result != success) return call.result;
  if (call.state.reserved.erase(pointer) == 0) return invalid_value;
  munmap(reinterpret_cast<void*>(pointer), size);
  return success;
}

CANELE_FAKE_API Result cuMemMap(DevicePtr pointer, std::size_t size, std::size_t offset, AllocationHandle handle,
                                unsigned long long) {
  const Call call("cuMemMap");
  if (call.result != success) return call.result;
  const auto found = call.state.physical.find(handle);
  if (found == call.state.physical.end() || offset != 0 || size > found->second.size) return invalid_value;
  Allocation* const one =
      map_memory(call.state, Kind::virtual_memory, found->second.memfd, size, reinterpret_cast<void*>(pointer));
  if (one == nullptr) return out_of_memory;
  one->device = found->second.device;
  return success;
}

CANELE_FAKE_API Result cuMemUnmap(DevicePtr pointer, std::size_t) {
  const Call call("cuMemUnmap");
  return call.result != success ? call.result : release(call.state, pointer);
}

CANELE_FAKE_API Result cuMemSetAccess(DevicePtr pointer, std::size_t, const AccessDescription*, std::size_t) {
  const Call call("cuMemSetAccess");
  if (call.result != success) return call.result;
  return call.state.find(pointer) != nullptr ? success : invalid_value;
}

CANELE_FAKE_API Result cuPointerGetAttributes(unsigned count, const int* which, void** values, DevicePtr pointer) {
  const Call call("cuPointerGetAttributes", Call::Needs::init);
  if (call.result != success) return call.result;
  const Allocation* const one = call.state.find(pointer);
  for (unsigned i = 0; i < count; ++i) {
    const Result result = write_attribute(call.state, one, pointer, which[i], values[i]);
    if (result != success) return result;
  }
  return success;
}

CANELE_FAKE_API Result cuPointerSetAttribute(const void* value, int which, DevicePtr pointer) {
  const Call call("cuPointerSetAttribute");
  if (call.result != success) return call.result;
  Allocation* const one = call.state.find(pointer);
  if (one == nullptr || which != attribute_sync_memops || one->kind == Kind::pool) return invalid_value;
  one->sync_memops = *static_cast<const unsigned*>(value) != 0;
  return success;
}

CANELE_FAKE_API Result cuMemHostAlloc(void** memory, std::size_t size, unsigned) {
  const Call call("cuMemHostAlloc");
  if (call.result != success) return call.result;
  void* const pages = mmap(nullptr, whole_pages(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return out_of_memory;
  const Result result = register_pages(call.state, pages, size, true);
  if (result == success) *memory = pages;
  if (result != success) munmap(pages, whole_pages(size));
  return result;
}

CANELE_FAKE_API Result cuMemFreeHost(void* memory) {
  const Call call("cuMemFreeHost");
  if (call.result != success) return call.result;
  const auto found = call.state.pinned.find(reinterpret_cast<std::uintptr_t>(memory));
  if (found == call.state.pinned.end() || !found->second.owned) return invalid_value;
  call.state.pinned_bytes -= found->second.size;
  munmap(memory, whole_pages(found->second.size));
  call.state.pinned.erase(found);
  return success;
}

CANELE_FAKE_API Result cuMemHostRegister_v2(void* memory, std::size_t size, unsigned) {
  const Call call("cuMemHostRegister_v2");
  if (call.result != success) return call.result;
  return memory == nullptr || size == 0 ? invalid_value : register_pages(call.state, memory, size, false);
}

CANELE_FAKE_API Result cuMemHostUnregister(void* memory) {
  const Call call("cuMemHostUnregister");
  if (call.result != success) return call.result;
  const auto found = call.state.pinned.find(reinterpret_cast<std::uintptr_t>(memory));
  if (found == call.state.pinned.end() || found->second.owned) return 713;  // HOST_MEMORY_NOT_REGISTERED
  call.state.pinned_bytes -= found->second.size;
  call.state.pinned.erase(found);
  return success;
}

CANELE_FAKE_API Result cuIpcGetMemHandle(IpcHandle* handle, DevicePtr pointer) {
  const Call call("cuIpcGetMemHandle");
  if (call.result != success) return call.result;
  const Allocation* const one = call.state.find(pointer);
  if (one == nullptr || one->kind != Kind::plain) return invalid_value;
  Exported out{};
  std::memcpy(out.magic, magic_of_handles, sizeof out.magic);
  out.process = getpid();
  out.memfd = one->memfd;
  out.id = one->id;
  out.size = one->size;
  out.inode = inode_of(one->memfd);
  out.device = one->device;
  *handle = {};
  std::memcpy(handle, &out, sizeof out);
  return success;
}

CANELE_FAKE_API Result cuIpcOpenMemHandle_v2(DevicePtr* pointer, IpcHandle handle, unsigned) {
  const Call call("cuIpcOpenMemHandle_v2");
  if (call.result != success) return call.result;
  Exported in;
  std::memcpy(&in, &handle, sizeof in);
  if (std::memcmp(in.magic, magic_of_handles, sizeof in.magic) != 0) return invalid_value;
  if (in.process == getpid()) return invalid_context;
  if (call.state.refuses_ipc) return not_supported;
  const std::string origin(handle.bytes, sizeof handle.bytes);
  for (const auto& [address, one] : call.state.memory) {
    if (one->origin != origin) continue;
    ++one->opened;
    *pointer = address;
    return success;
  }
  const std::string path = "/proc/" + std::to_string(in.process) + "/fd/" + std::to_string(in.memfd);
  const int memfd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (memfd < 0 || inode_of(memfd) != in.inode) {
    if (memfd >= 0) close(memfd);
    return invalid_value;
  }
  Allocation* const one = map_memory(call.state, Kind::imported, memfd, in.size, nullptr);
  if (one == nullptr) return out_of_memory;
  one->origin = origin;
  one->opened = 1;
  one->device = in.device;
  one->context = call.context;
  *pointer = reinterpret_cast<DevicePtr>(one->view);
  return success;
}

CANELE_FAKE_API Result cuIpcCloseMemHandle(DevicePtr pointer) {
  const Call call("cuIpcCloseMemHandle");
  if (call.result != success) return call.result;
  const auto found = call.state.memory.find(pointer);
  if (found == call.state.memory.end() || found->second->kind != Kind::imported) return invalid_value;
  return --found->second->opened > 0 ? success : release(call.state, pointer);
}
