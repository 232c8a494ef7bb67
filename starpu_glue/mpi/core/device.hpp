// SPDX-License-Identifier: BSD-3-Clause
//
// Buffers in the memory of GPUs.
//
// Messages of any kind go to the engine, which takes such memory. Collectives, packing and local copies go through
// copies in host memory. Windows, MPI_Reduce_local and external32 take host memory only.
//
// Any thread. Without a GPU a check is one load and one branch.
#pragma once

#include <canele/device.h>

#include "starpu_glue/mpi/core/fast_calls.hpp"

namespace canele::mpi {

/// Returns whether a buffer may be device memory.
inline bool devices_in_use() { return fast_calls.direct_count_limit.load(std::memory_order_relaxed) == 0; }

/// Asks the engine for devices, if it runs. A program loads its GPU library when it first uses it, so this is asked at
/// the start, at each new communicator, and by MPIX_Query_cuda_support. Returns whether there are devices.
bool note_devices();

/// Returns whether memory is that of a device. Only if devices_in_use.
[[gnu::cold]] bool is_device_memory(const void* memory);
inline bool is_on_device(const void* memory) { return devices_in_use() && is_device_memory(memory); }

/// Copies between host memory and device memory; blocks until the device has done so. Ends the job if the device fails.
void copy_by_device(const canele_data_t& to, const canele_data_t& from);

/// Returns an error for device memory in a call that takes none, else MPI_SUCCESS.
[[gnu::cold]] int reject_device_buffer(const char* what);
inline int check_host_buffer(const void* memory, const char* what) {
  return is_on_device(memory) ? reject_device_buffer(what) : 0;
}

}  // namespace canele::mpi
