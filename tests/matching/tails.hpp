// SPDX-License-Identifier: BSD-3-Clause
//
// Tail queues beside the same lists under one lock, two threads.
//
// Who: match_campaign. Threads: starts two.
// Surprise: with fewer than two idle cores the figures say nothing; no test rests on them.
#pragma once

namespace canele::comm {

/// Prints matches per second of both for K = 1 to 1,024 entries that fit nothing; medians of five turns, alternating.
void compare_tails(double seconds);

}  // namespace canele::comm
