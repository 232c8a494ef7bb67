// SPDX-License-Identifier: BSD-3-Clause
//
// Memory of NVIDIA GPUs as a memory kind, by the CUDA driver API.
//
// The factory is a constant: any thread may read it.
#pragma once

#include "drivers/memory.hpp"

namespace canele::drivers {

extern const MemoryFactory cuda_memory_factory;

}  // namespace canele::drivers
