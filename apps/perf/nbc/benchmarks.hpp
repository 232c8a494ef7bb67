// SPDX-License-Identifier: BSD-3-Clause
//
// The two methods to measure non-blocking collectives: Reynier's and CRESTA's. The figures: options.cpp.
//
// run() calls them on all ranks, in canele-perf or in a peer's program. Threads: the main thread. Only rank 0 decides
// and reports; the other ranks follow its orders.
#pragma once

#include "order.hpp"

namespace canele::perf::nbc {

/// Measures computation beside a collective, for all operations and times. Rank 0 only.
void overlap(Bench& bench, Orders& orders);
/// Measures late starts, and availability. Rank 0 only.
void cresta(Bench& bench, Orders& orders);

/// Pins, and measures what the options request, on every rank. Throws std::runtime_error with the reason.
void run(progress::Link& link, Collectives& collectives, const Options& options, const Before& before);

}  // namespace canele::perf::nbc
