// SPDX-License-Identifier: BSD-3-Clause
//
// What the cache warmer is worth: a search after the caches were lost, with and without it. Starts one thread.
//
// With fewer than two idle cores the figures mean nothing; no test relies on them.
#pragma once

namespace canele::comm {

/// Prints the median time of a search to the end of N receives, in four states. The receives are in the caches; evicted
/// by the program; then warmed by a cache warmer on another core; or by one on this core. `seconds` for each.
void compare_warming(double seconds);

}  // namespace canele::comm
