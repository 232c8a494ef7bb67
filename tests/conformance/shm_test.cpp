// SPDX-License-Identifier: BSD-3-Clause
//
// Conformance of the shm driver, with one copy (cross-memory attach) and with two.
#include "drivers/shm/shm.hpp"

#include "tests/conformance/kit.hpp"

using canele::conformance::dial_shm;

CANELE_CONFORMANCE(shm, canele::drivers::shm_factory,
                   {.settings = {{"EXPERT_SHM_BROADCAST_SEGMENT", "on"}}, .dial = dial_shm});
CANELE_CONFORMANCE(shm_two_copies, canele::drivers::shm_factory, {.settings = {{"SHM_CMA", "off"}}, .dial = dial_shm});
