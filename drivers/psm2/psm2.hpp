// SPDX-License-Identifier: BSD-3-Clause
//
// The psm2 driver's factory: all that a registry or a test sees of it.
//
// Who: the module's entry, tests. Threads: a constant. Surprise: none.
#pragma once

#include "drivers/driver.hpp"

namespace canele::drivers {

extern const DriverFactory psm2_factory;

}  // namespace canele::drivers
