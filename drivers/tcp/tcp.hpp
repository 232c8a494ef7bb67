// SPDX-License-Identifier: BSD-3-Clause
//
// The tcp driver's factory: all that comm's registry sees of it.
//
// Who: comm's registry, tests. Threads: a constant. Surprise: none.
#pragma once

#include "drivers/driver.hpp"

namespace canele::drivers {

extern const DriverFactory tcp_factory;

}  // namespace canele::drivers
