// SPDX-License-Identifier: BSD-3-Clause
//
// Factory of the shared-memory driver: ranks of one host. README.md is the map.
//
// Used by comm's registry and by tests; the factory is a constant. drivers/driver.hpp gives the threading of its
// drivers. Nothing that the driver uses has a name in a file system.
#pragma once

#include "drivers/driver.hpp"

namespace canele::drivers {

extern const DriverFactory shm_factory;

}  // namespace canele::drivers
