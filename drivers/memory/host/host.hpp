// SPDX-License-Identifier: BSD-3-Clause
//
// Host memory as a memory kind: the simplest form of each duty of drivers/memory.hpp, and its worked example.
//
// The factory is a constant: any thread may read it.
#pragma once

#include "drivers/memory.hpp"

namespace canele::drivers {

extern const MemoryFactory host_memory_factory;

}  // namespace canele::drivers
