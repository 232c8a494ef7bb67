// SPDX-License-Identifier: BSD-3-Clause
//
// Factory of the self driver: messages of a rank to itself. Its source is the worked example for authors of drivers.
//
// Used by comm's registry and by tests. The factory is a constant: any thread may read it.
#pragma once

#include "drivers/driver.hpp"

namespace canele::drivers {

extern const DriverFactory self_factory;

}  // namespace canele::drivers
