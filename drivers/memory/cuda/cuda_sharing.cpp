// SPDX-License-Identifier: BSD-3-Clause
//
// Pinned host memory, and device memory that processes share.
#include <cstring>

#include "drivers/memory/cuda/cuda_memory.hpp"

namespace canele::drivers::cuda {

std::byte* CudaMemory::allocate_pinned(std::size_t size, std::string* error) {
  Context const context = any_context(error);
  if (context == nullptr) return nullptr;
  const Current current(functions_, context);
  void* memory = nullptr;
  Result result = current.result();
  if (result == success) result = functions_.cuMemHostAlloc(&memory, size != 0 ? size : 1, host_alloc_portable);
  if (result == success) return static_cast<std::byte*>(memory);
  *error =
      "CUDA: " + std::to_string(size) + " bytes of pinned memory: " + describe(functions_, "cuMemHostAlloc", result);
  return nullptr;
}

void CudaMemory::free_pinned(std::byte* memory) {
  std::string none;
  Context const context = any_context(&none);
  if (context == nullptr) return;
  const Current current(functions_, context);
  if (current.result() == success) functions_.cuMemFreeHost(memory);
}

std::string CudaMemory::pin(void* memory, std::size_t size) {
  std::string error;
  Context const context = any_context(&error);
  if (context == nullptr) return error;
  const Current current(functions_, context);
  Result result = current.result();
  if (result == success) result = functions_.cuMemHostRegister_v2(memory, size, host_register_portable);
  return result == success ? "" : "CUDA: " + describe(functions_, "cuMemHostRegister", result);
}

std::string CudaMemory::unpin(void* memory) {
  std::string error;
  Context const context = any_context(&error);
  if (context == nullptr) return error;
  const Current current(functions_, context);
  Result result = current.result();
  if (result == success) result = functions_.cuMemHostUnregister(memory);
  return result == success ? "" : "CUDA: " + describe(functions_, "cuMemHostUnregister", result);
}

std::string CudaMemory::export_memory(const void* address, MemoryExport* exported) {
  MemoryPlace place;
  if (!locate(address, &place)) return "the address is no memory of a CUDA device";
  const std::string device = "CUDA device " + std::to_string(place.device) + ": ";
  if (functions_.cuIpcGetMemHandle == nullptr || functions_.cuDeviceGetUuid_v2 == nullptr)
    return device + "the driver has no functions to share memory between processes";
  if (place.managed) return device + "managed memory cannot be shared between processes";
  if (place.context == nullptr) return device + "memory of a pool, or mapped by hand, has no handle for processes";
  const Current current(functions_, static_cast<Context>(place.context));
  IpcHandle handle;
  Uuid uuid;
  const char* call = "cuCtxPushCurrent";
  Result result = current.result();
  if (result == success) result = functions_.cuDeviceGetUuid_v2(&uuid, place.device), call = "cuDeviceGetUuid";
  if (result == success) {
    result = functions_.cuIpcGetMemHandle(&handle, reinterpret_cast<DevicePtr>(place.base));
    call = "cuIpcGetMemHandle";
  }
  if (result != success) return fault(place.device, call, result);
  // The program's copies to this memory then end before they return: a peer never reads what is still on its way.
  const unsigned yes = 1;
  if (functions_.cuPointerSetAttribute != nullptr)
    functions_.cuPointerSetAttribute(&yes, attribute_sync_memops, reinterpret_cast<DevicePtr>(place.base));
  std::memcpy(exported->handle, handle.bytes, sizeof handle.bytes);
  std::memcpy(exported->device, uuid.bytes, sizeof uuid.bytes);
  exported->offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - place.base);
  exported->size = place.size;
  exported->allocation = place.allocation;
  return "";
}

std::string CudaMemory::open(const MemoryExport& exported, int device, std::byte** address) {
  if (functions_.cuIpcOpenMemHandle_v2 == nullptr || functions_.cuIpcCloseMemHandle == nullptr)
    return "CUDA: the driver has no functions to share memory between processes";
  if (exported.offset > exported.size) return "CUDA: an export names bytes beyond its allocation";
  const std::lock_guard lock(mutex_);  // two threads must not open one handle at once
  const std::string key(reinterpret_cast<const char*>(exported.handle), sizeof exported.handle);
  auto known = imports_.find(key);
  if (known == imports_.end()) {
    std::string error;
    Context const context = primary_of(device, &error);
    if (context == nullptr) return error;
    const Current current(functions_, context);
    IpcHandle handle;
    std::memcpy(handle.bytes, exported.handle, sizeof handle.bytes);
    DevicePtr pointer = 0;
    Result result = current.result();
    if (result == success) result = functions_.cuIpcOpenMemHandle_v2(&pointer, handle, ipc_lazy_peer_access);
    if (result != success) return fault(device, "cuIpcOpenMemHandle", result);
    known = imports_.insert({key, {reinterpret_cast<std::byte*>(pointer), context, 0}}).first;
  }
  MemoryPlace mapped;
  if (!locate(known->second.base, &mapped) || exported.size > mapped.size) {
    if (known->second.opens == 0) unmap(known);
    return "CUDA: an export names bytes beyond the memory that it maps";
  }
  ++known->second.opens;
  *address = known->second.base + exported.offset;
  return "";
}

void CudaMemory::close(std::byte* address) {
  const std::lock_guard lock(mutex_);
  for (auto one = imports_.begin(); one != imports_.end(); ++one) {
    MemoryPlace mapped;
    if (!locate(one->second.base, &mapped) || address < mapped.base || address > mapped.base + mapped.size) continue;
    if (--one->second.opens == 0) unmap(one);
    return;
  }
}

/// Ends the mapping of an import. Called under the mutex.
void CudaMemory::unmap(Imports::iterator import) {
  const Current current(functions_, import->second.context);
  if (current.result() == success) functions_.cuIpcCloseMemHandle(reinterpret_cast<DevicePtr>(import->second.base));
  imports_.erase(import);
}

}  // namespace canele::drivers::cuda
