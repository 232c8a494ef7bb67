// SPDX-License-Identifier: BSD-3-Clause
//
// Random one-sided operations among all ranks, several at a time, while all kinds of faults happen. One thread.
//
// Each rank has a window with a part for each origin, a word that all ranks add to by atomic operations, and sums that
// all ranks add to by accumulates. An origin writes only to its own part, in records whose words all hold a number that
// grows. So it knows what it must read, and the target knows what a notification must find.
//
//   window of a rank:  │ word │ sums │ part of rank 0: records …, guard │ part of rank 1 │ …
//
// Each rank also has temporary memory, which it revokes in the middle of its operations.
//
// What must hold:
// - A get that follows puts in the same lane reads the last of them.
// - At a notification, all words of its range have the number of its put, or a later one.
// - The notifications of one origin come once, in order, without a gap if the origin lives.
// - Notifications to a counter are counted once each.
// - Former values grow; without deaths, the word and the sums end as the sum of all.
// - Guards do not change, and neither does memory after it was revoked.
#pragma once

#include "apps/sim/run.hpp"

namespace canele::sim {

Outcome run_one_sided(const RunOptions& options);

}  // namespace canele::sim
