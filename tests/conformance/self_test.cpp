// SPDX-License-Identifier: BSD-3-Clause
//
// Conformance of the self driver: one rank, which sends to itself.
#include "drivers/self/self.hpp"

#include "tests/conformance/kit.hpp"

CANELE_CONFORMANCE(self, canele::drivers::self_factory, {});
