// SPDX-License-Identifier: BSD-3-Clause
//
// The functions of the CUDA driver API that only tests call, and the controls of the fake driver.
//
// Both come from the same libcuda.so.1. On a real driver the controls are missing.
#pragma once

#include "drivers/memory/cuda/cuda_api.hpp"

namespace canele::gpu_test {

using namespace canele::drivers::cuda;

struct Location {
  int type;
  int id;
};
/// CUmemAllocationProp.
struct AllocationProperties {
  int type;
  int handle_types;
  Location location;
  void* security;
  unsigned char flags[8];
};
struct AccessDescription {
  Location location;
  int flags;
};
using AllocationHandle = unsigned long long;

#define CANELE_CUDA_OF_TESTS(X)                                                                                      \
  X(cuCtxGetCurrent, (Context * context))                                                                            \
  X(cuCtxSetCurrent, (Context context))                                                                              \
  X(cuCtxCreate_v2, (Context * context, unsigned flags, Device device))                                              \
  X(cuCtxDestroy_v2, (Context context))                                                                              \
  X(cuMemAlloc_v2, (DevicePtr * pointer, std::size_t size))                                                          \
  X(cuMemFree_v2, (DevicePtr pointer))                                                                               \
  X(cuMemAllocManaged, (DevicePtr * pointer, std::size_t size, unsigned flags))                                      \
  X(cuMemAllocAsync, (DevicePtr * pointer, std::size_t size, Stream stream))                                         \
  X(cuMemFreeAsync, (DevicePtr pointer, Stream stream))                                                              \
  X(cuMemCreate,                                                                                                     \
    (AllocationHandle * handle, std::size_t size, const AllocationProperties* properties, unsigned long long flags)) \
  X(cuMemRelease, (AllocationHandle handle))                                                                         \
  X(cuMemAddressReserve,                                                                                             \
    (DevicePtr * pointer, std::size_t size, std::size_t alignment, DevicePtr hint, unsigned long long flags))        \
  X(cuMemAddressFree, (DevicePtr pointer, std::size_t size))                                                         \
  X(cuMemMap,                                                                                                        \
    (DevicePtr pointer, std::size_t size, std::size_t offset, AllocationHandle handle, unsigned long long flags))    \
  X(cuMemUnmap, (DevicePtr pointer, std::size_t size))                                                               \
  X(cuMemSetAccess, (DevicePtr pointer, std::size_t size, const AccessDescription* access, std::size_t count))       \
  X(cuMemcpy, (DevicePtr to, DevicePtr from, std::size_t size))                                                      \
  X(cuMemsetD8_v2, (DevicePtr pointer, unsigned char value, std::size_t size))                                       \
  X(cuStreamWaitEvent, (Stream stream, Event event, unsigned flags))                                                 \
  X(cuStreamSynchronize, (Stream stream))

// X(name, parameters): controls of the fake driver.
//   fakeCudaFail        the next call of `function` but `skip` returns `error`; sticky: each call from then on
//   fakeCudaCalls       number of calls of `function`; of all functions if it is nullptr
//   fakeCudaHold        holds back all copies but the next `hold` - 1, or lets them go on (0)
//   fakeCudaHoldStream  the same for the work of one stream
//   fakeCudaPageable    number of asynchronous copies with host memory that was not pinned
//   fakeCudaPinnedBytes bytes of host memory that are pinned now
#define CANELE_CUDA_CONTROLS(X)                                               \
  X(fakeCudaFail, (const char* function, int skip, Result error, int sticky)) \
  X(fakeCudaCalls, (const char* function, std::uint64_t* count))              \
  X(fakeCudaHold, (int hold))                                                 \
  X(fakeCudaHoldStream, (Stream stream, int hold))                            \
  X(fakeCudaPageable, (std::uint64_t * count))                                \
  X(fakeCudaPinnedBytes, (std::uint64_t * bytes))

}  // namespace canele::gpu_test
