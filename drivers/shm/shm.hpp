// SPDX-License-Identifier: BSD-3-Clause
//
// The shared-memory driver: ranks of one host.
//
// Who: comm's registry takes the factory; tests too. Threads: as drivers/driver.hpp says.
// Surprise: nothing it uses has a name in a file system. README.md is the map.
#pragma once

#include "drivers/driver.hpp"

namespace canele::drivers {

extern const DriverFactory shm_factory;

}  // namespace canele::drivers
