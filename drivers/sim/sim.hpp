// SPDX-License-Identifier: BSD-3-Clause
//
// Factory of the sim driver: a rank of a simulated world. Its argument names the fabric ("sim:eth0").
//
// Used by the simulator; it is not part of the library. The factory is a constant: any thread may read it.
#pragma once

#include "drivers/driver.hpp"

namespace canele::drivers {

extern const DriverFactory sim_factory;

}  // namespace canele::drivers
