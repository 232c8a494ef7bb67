// SPDX-License-Identifier: BSD-3-Clause
//
// The part of the CUDA driver API that the library calls: own declarations, so that a build needs no toolkit.
//
// cuda_library.cpp fills a table of these functions with dlsym. Names are the exact symbols of libcuda.so.1: a name
// without its suffix (_v2) is a different, older function. Values and layouts are those of CUDA 11 and newer. Any
// thread may call a function of the driver.
#pragma once

#include <cstddef>
#include <cstdint>

namespace canele::drivers::cuda {

using Result = int;
using Device = int;
using DevicePtr = std::uint64_t;
using Context = struct ContextObject*;
using Stream = struct StreamObject*;
using Event = struct EventObject*;

/// Results that the library tells apart.
enum ResultCode : Result {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  deinitialized = 4,
  stub_library = 34,
  no_device = 100,
  invalid_device = 101,
  invalid_context = 201,
  already_mapped = 208,
  ecc_uncorrectable = 214,
  invalid_handle = 400,
  not_ready = 600,
  illegal_address = 700,
  context_is_destroyed = 709,
  launch_failed = 719,
  not_supported = 801
};

/// Attributes of a pointer.
enum PointerAttribute : int {
  attribute_context = 1,
  attribute_memory_type = 2,
  attribute_sync_memops = 6,
  attribute_buffer_id = 7,
  attribute_is_managed = 8,
  attribute_device_ordinal = 9,
  attribute_range_start = 11,
  attribute_range_size = 12
};

enum MemoryType : unsigned { type_none = 0, type_host = 1, type_device = 2, type_array = 3, type_unified = 4 };

inline constexpr unsigned stream_non_blocking = 1;
inline constexpr unsigned event_disable_timing = 2;
inline constexpr unsigned host_alloc_portable = 1;
inline constexpr unsigned host_register_portable = 1;
inline constexpr unsigned ipc_lazy_peer_access = 1;
inline constexpr int capture_relaxed = 2;

struct Uuid {
  char bytes[16];
};
struct IpcHandle {
  char bytes[64];
};

/// CUDA_MEMCPY2D_v2.
struct Copy2D {
  std::size_t from_x, from_y;
  unsigned from_type;
  const void* from_host;
  DevicePtr from_device;
  void* from_array;
  std::size_t from_pitch;
  std::size_t to_x, to_y;
  unsigned to_type;
  void* to_host;
  DevicePtr to_device;
  void* to_array;
  std::size_t to_pitch;
  std::size_t width, height;
};
static_assert(sizeof(Copy2D) == 128);

// X(name, parameters): functions without which the library cannot be used.
#define CANELE_CUDA_REQUIRED(X)                                                                   \
  X(cuInit, (unsigned flags))                                                                     \
  X(cuDriverGetVersion, (int* version))                                                           \
  X(cuGetErrorName, (Result error, const char** name))                                            \
  X(cuDeviceGetCount, (int* count))                                                               \
  X(cuDeviceGet, (Device * device, int ordinal))                                                  \
  X(cuDevicePrimaryCtxGetState, (Device device, unsigned* flags, int* active))                    \
  X(cuDevicePrimaryCtxRetain, (Context * context, Device device))                                 \
  X(cuDevicePrimaryCtxRelease_v2, (Device device))                                                \
  X(cuCtxPushCurrent_v2, (Context context))                                                       \
  X(cuCtxPopCurrent_v2, (Context * context))                                                      \
  X(cuPointerGetAttributes, (unsigned count, const int* which, void** values, DevicePtr pointer)) \
  X(cuMemHostAlloc, (void** memory, std::size_t size, unsigned flags))                            \
  X(cuMemFreeHost, (void* memory))                                                                \
  X(cuMemHostRegister_v2, (void* memory, std::size_t size, unsigned flags))                       \
  X(cuMemHostUnregister, (void* memory))                                                          \
  X(cuMemcpyAsync, (DevicePtr to, DevicePtr from, std::size_t size, Stream stream))               \
  X(cuMemcpy2DAsync_v2, (const Copy2D* copy, Stream stream))                                      \
  X(cuStreamCreate, (Stream * stream, unsigned flags))                                            \
  X(cuStreamDestroy_v2, (Stream stream))                                                          \
  X(cuEventCreate, (Event * event, unsigned flags))                                               \
  X(cuEventRecord, (Event event, Stream stream))                                                  \
  X(cuEventQuery, (Event event))                                                                  \
  X(cuEventDestroy_v2, (Event event))

// X(name, parameters): a missing one switches off only what needs it. Its pointer is then nullptr.
#define CANELE_CUDA_OPTIONAL(X)                                                     \
  X(cuDeviceGetUuid_v2, (Uuid * uuid, Device device))                               \
  X(cuThreadExchangeStreamCaptureMode, (int* mode))                                 \
  X(cuPointerSetAttribute, (const void* value, int which, DevicePtr pointer))       \
  X(cuIpcGetMemHandle, (IpcHandle * handle, DevicePtr pointer))                     \
  X(cuIpcOpenMemHandle_v2, (DevicePtr * pointer, IpcHandle handle, unsigned flags)) \
  X(cuIpcCloseMemHandle, (DevicePtr pointer))

/// The functions of libcuda.so.1.
struct Functions {
#define CANELE_CUDA_MEMBER(name, parameters) Result(*name) parameters = nullptr;
  CANELE_CUDA_REQUIRED(CANELE_CUDA_MEMBER)
  CANELE_CUDA_OPTIONAL(CANELE_CUDA_MEMBER)
#undef CANELE_CUDA_MEMBER
};

}  // namespace canele::drivers::cuda
