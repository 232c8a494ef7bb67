// SPDX-License-Identifier: BSD-3-Clause
//
// What the engine knows of GPUs.
#include "starpu_glue/mpi/core/device.hpp"

#include <mpi.h>

#include <climits>

#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/core/state.hpp"

namespace canele::mpi {

constinit FastCalls fast_calls;

bool note_devices() {
  canele_engine_t* const running = engine();
  const bool there = running != nullptr && canele_device_support(running, CANELE_MEMORY_CUDA) == 1;
  fast_calls.direct_count_limit.store(there ? 0 : INT_MAX, std::memory_order_relaxed);
  return there;
}

bool is_device_memory(const void* memory) {
  int kind = CANELE_MEMORY_HOST;
  if (engine() == nullptr || canele_device_kind_of(engine(), memory, &kind, nullptr) != CANELE_OK) return false;
  return kind != CANELE_MEMORY_HOST;
}

void copy_by_device(const canele_data_t& to, const canele_data_t& from) {
  if (canele_device_copy(engine(), &to, &from) != CANELE_OK) fatal("%s", canele_error_detail());
}

int reject_device_buffer(const char* what) {
  return fail(MPI_ERR_BUFFER,
              "%s is GPU memory; expected: host memory. Copy the data there, or use a message or collective", what);
}

}  // namespace canele::mpi
