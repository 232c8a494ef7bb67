// SPDX-License-Identifier: BSD-3-Clause
//
// The self driver as a module: the test object of conformance_module.
#include "drivers/self/self.hpp"

CANELE_DRIVER_MODULE(canele::drivers::self_factory)
