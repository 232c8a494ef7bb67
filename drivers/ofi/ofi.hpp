// SPDX-License-Identifier: BSD-3-Clause
//
// The libfabric driver's factory: all that is seen of it from outside.
//
// Who: the module's entry point, tests. Threads: a constant. Surprise: none.
#pragma once

#include "drivers/driver.hpp"

namespace canele::drivers {

extern const DriverFactory ofi_factory;

}  // namespace canele::drivers
