// SPDX-License-Identifier: BSD-3-Clause
//
// The sim driver's factory: a rank of a simulated world. Its argument names the fabric ("sim:eth0").
//
// Who: the simulator; it is not part of the library. Threads: a constant. Surprise: none.
#pragma once

#include "drivers/driver.hpp"

namespace canele::drivers {

extern const DriverFactory sim_factory;

}  // namespace canele::drivers
