// SPDX-License-Identifier: BSD-3-Clause
//
// The self driver's factory: messages of a rank to itself. Its source is the worked example for authors of drivers.
//
// Who: comm's registry, tests. Threads: a constant. Surprise: none.
#pragma once

#include "drivers/driver.hpp"

namespace canele::drivers {

extern const DriverFactory self_factory;

}  // namespace canele::drivers
