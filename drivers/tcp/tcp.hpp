// SPDX-License-Identifier: BSD-3-Clause
//
// Factory of the tcp driver: everything that comm's registry sees of it.
//
// Used by comm's registry and by tests. The factory is a constant: any thread may read it.
#pragma once

#include "drivers/driver.hpp"

namespace canele::drivers {

extern const DriverFactory tcp_factory;

}  // namespace canele::drivers
