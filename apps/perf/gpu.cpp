// SPDX-License-Identifier: BSD-3-Clause
//
// The CUDA driver API: own declarations of the few functions that are used.
#include "gpu.hpp"

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "line_array.hpp"

namespace canele::perf {
namespace {

using Result = int;
using Pointer = std::uint64_t;
using Context = void*;
using Stream = void*;
constexpr unsigned managed_global = 1, host_portable = 1, stream_non_blocking = 1, ipc_lazy_peer_access = 1;

Pointer pointer_of(const void* memory) { return reinterpret_cast<Pointer>(memory); }

}  // namespace

const char* name_of(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::host:
      return "host";
    case MemoryKind::device:
      return "device";
    case MemoryKind::managed:
      return "managed";
  }
  return "";
}

struct Gpu::Api {
  void* library = nullptr;
  Stream stream = nullptr;
  Result (*cuInit)(unsigned) = nullptr;
  Result (*cuGetErrorName)(Result, const char**) = nullptr;
  Result (*cuDeviceGet)(int*, int) = nullptr;
  Result (*cuDevicePrimaryCtxRetain)(Context*, int) = nullptr;
  Result (*cuCtxSetCurrent)(Context) = nullptr;
  Result (*cuStreamCreate)(Stream*, unsigned) = nullptr;
  Result (*cuStreamSynchronize)(Stream) = nullptr;
  Result (*cuMemAlloc_v2)(Pointer*, std::size_t) = nullptr;
  Result (*cuMemAllocManaged)(Pointer*, std::size_t, unsigned) = nullptr;
  Result (*cuMemFree_v2)(Pointer) = nullptr;
  Result (*cuMemHostAlloc)(void**, std::size_t, unsigned) = nullptr;
  Result (*cuMemcpyAsync)(Pointer, Pointer, std::size_t, Stream) = nullptr;
  Result (*cuIpcGetMemHandle)(Handle*, Pointer) = nullptr;
  Result (*cuIpcOpenMemHandle_v2)(Pointer*, Handle, unsigned) = nullptr;

  template <typename Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function == nullptr) throw std::runtime_error(std::string("the CUDA driver has no function ") + name);
  }
  void check(Result result, const char* call) const {
    const char* name = nullptr;
    if (result == 0) return;
    if (cuGetErrorName(result, &name) != 0 || name == nullptr) name = "unknown error";
    throw std::runtime_error(std::string(call) + ": " + name + " (" + std::to_string(result) + ")");
  }
};

#define CANELE_FIND(name) api_->find(api_->name, #name)

Gpu::Gpu() : api_(std::make_unique<Api>()) {
  const char* const named = std::getenv("CANELE_EXPERT_GPU_LIBRARY");  // the library's setting
  const std::string file = named != nullptr && *named != '\0' ? named : "libcuda.so.1";
  api_->library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (api_->library == nullptr) throw std::runtime_error("no memory of a GPU: " + std::string(dlerror()));
  CANELE_FIND(cuInit);
  CANELE_FIND(cuGetErrorName);
  CANELE_FIND(cuDeviceGet);
  CANELE_FIND(cuDevicePrimaryCtxRetain);
  CANELE_FIND(cuCtxSetCurrent);
  CANELE_FIND(cuStreamCreate);
  CANELE_FIND(cuStreamSynchronize);
  CANELE_FIND(cuMemAlloc_v2);
  CANELE_FIND(cuMemAllocManaged);
  CANELE_FIND(cuMemFree_v2);
  CANELE_FIND(cuMemHostAlloc);
  CANELE_FIND(cuMemcpyAsync);
  CANELE_FIND(cuIpcGetMemHandle);
  CANELE_FIND(cuIpcOpenMemHandle_v2);
  int device = 0;
  Context context = nullptr;
  api_->check(api_->cuInit(0), "cuInit");
  api_->check(api_->cuDeviceGet(&device, 0), "cuDeviceGet");
  api_->check(api_->cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  api_->check(api_->cuCtxSetCurrent(context), "cuCtxSetCurrent");
  api_->check(api_->cuStreamCreate(&api_->stream, stream_non_blocking), "cuStreamCreate");
}

#undef CANELE_FIND

Gpu::~Gpu() = default;

Gpu& Gpu::get() {
  static Gpu* const gpu = new Gpu;  // no call to the driver while the process ends
  return *gpu;
}

std::byte* Gpu::allocate(MemoryKind kind, std::size_t size) {
  Pointer memory = 0;
  if (kind == MemoryKind::managed) {
    api_->check(api_->cuMemAllocManaged(&memory, size, managed_global), "cuMemAllocManaged");
  } else {
    api_->check(api_->cuMemAlloc_v2(&memory, size), "cuMemAlloc");
  }
  return reinterpret_cast<std::byte*>(memory);
}

std::byte* Gpu::allocate_pinned(std::size_t size) {
  void* memory = nullptr;
  api_->check(api_->cuMemHostAlloc(&memory, size, host_portable), "cuMemHostAlloc");
  return static_cast<std::byte*>(memory);
}

void Gpu::free(std::byte* memory) { api_->cuMemFree_v2(pointer_of(memory)); }

void Gpu::copy(std::byte* to, const std::byte* from, std::size_t size) {
  api_->check(api_->cuMemcpyAsync(pointer_of(to), pointer_of(from), size, api_->stream), "cuMemcpyAsync");
}

void Gpu::wait() { api_->check(api_->cuStreamSynchronize(api_->stream), "cuStreamSynchronize"); }

Gpu::Handle Gpu::export_memory(const std::byte* memory) {
  Handle handle{};
  api_->check(api_->cuIpcGetMemHandle(&handle, pointer_of(memory)), "cuIpcGetMemHandle");
  return handle;
}

std::byte* Gpu::open(const Handle& handle) {
  Pointer memory = 0;
  if (api_->cuIpcOpenMemHandle_v2(&memory, handle, ipc_lazy_peer_access) != 0) return nullptr;
  return reinterpret_cast<std::byte*>(memory);
}

MessageMemory::MessageMemory(MemoryKind kind, std::size_t size) : data_(nullptr, Free{kind}) {
  if (kind != MemoryKind::host) {
    data_.reset(Gpu::get().allocate(kind, size));
    return;
  }
  data_.reset(AtLines<std::byte>().allocate(size));
  std::memset(data_.get(), 0x5a, size);
}

void MessageMemory::Free::operator()(std::byte* memory) const {
  if (kind == MemoryKind::host) {
    AtLines<std::byte>().deallocate(memory, 0);
  } else {
    Gpu::get().free(memory);
  }
}

}  // namespace canele::perf
