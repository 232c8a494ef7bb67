// SPDX-License-Identifier: BSD-3-Clause
//
// The self driver as a module: what conformance_module is tested with.
//
// Who: conformance_module. Threads: none of its own. Surprise: none.
#include "drivers/self/self.hpp"

CANELE_DRIVER_MODULE(canele::drivers::self_factory)
