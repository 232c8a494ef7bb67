// SPDX-License-Identifier: BSD-3-Clause
//
// Conformance of the tcp driver.
#include "drivers/tcp/tcp.hpp"

#include "tests/conformance/kit.hpp"

CANELE_CONFORMANCE(tcp, canele::drivers::tcp_factory, {.dial = canele::conformance::dial_tcp});
