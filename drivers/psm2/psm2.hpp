// SPDX-License-Identifier: BSD-3-Clause
//
// Factory of the psm2 driver: everything that a registry or a test sees of it.
//
// Used by the module's entry point and by tests. The factory is a constant: any thread may read it.
#pragma once

#include "drivers/driver.hpp"

namespace canele::drivers {

extern const DriverFactory psm2_factory;

}  // namespace canele::drivers
