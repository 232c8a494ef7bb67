// SPDX-License-Identifier: BSD-3-Clause
//
// Conformance of the psm2 driver, on libpsm2's own shared memory: no Omni-Path hardware is needed.
//
// The program is linked with a shim that makes libpsm2 believe in hardware (CMakeLists.txt).
#include "drivers/psm2/psm2.hpp"

#include "tests/conformance/kit.hpp"

CANELE_CONFORMANCE(psm2, canele::drivers::psm2_factory,
                   {.environment = {{"PSM2_DEVICES", "self,shm"}, {"HFI_NO_BACKTRACE", "1"}},
                    .leaves_files = true,
                    .keeps_descriptors = true,
                    .parts_survivors = true});
