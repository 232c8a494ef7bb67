// SPDX-License-Identifier: BSD-3-Clause
//
// Tail queues beside the same lists under one lock. Starts two threads.
//
// With fewer than two idle cores the figures mean nothing; no test relies on them.
#pragma once

namespace canele::comm {

/// Prints matches per second of both for K = 1 to 1,024 entries that match nothing; medians of five turns, alternating.
void compare_tails(double seconds);

}  // namespace canele::comm
