// SPDX-License-Identifier: BSD-3-Clause
//
// The two ways to look at non-blocking collectives: Reynier's and CRESTA's. The figures: options.cpp.
//
// Who: run(), by main of canele-perf or of a peer's program, on all ranks. Threads: the main thread.
// Surprise: only rank 0 decides and reports; the others follow its orders.
#pragma once

#include "order.hpp"

namespace canele::perf::nbc {

/// Rank 0. Computation beside a collective, for all operations and times.
void overlap(Bench& bench, Orders& orders);
/// Rank 0. Late starts, and availability.
void cresta(Bench& bench, Orders& orders);

/// Pins, measures what options ask for, on every rank. Throws std::runtime_error with what is wrong.
void run(progress::Link& link, Collectives& collectives, const Options& options, const Before& before);

}  // namespace canele::perf::nbc
