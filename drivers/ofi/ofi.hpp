// SPDX-License-Identifier: BSD-3-Clause
//
// Factory of the libfabric driver: its only public name.
//
// Used by the module's entry point and by tests. The factory is a constant: any thread may read it.
#pragma once

#include "drivers/driver.hpp"

namespace canele::drivers {

extern const DriverFactory ofi_factory;

}  // namespace canele::drivers
