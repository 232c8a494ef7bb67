// SPDX-License-Identifier: BSD-3-Clause
//
// What the heater is worth: a search after the caches were lost, with and without it.
//
// Who: match_campaign. Threads: starts one.
// Surprise: with fewer than two idle cores the figures say nothing; no test rests on them.
#pragma once

namespace canele::comm {

/// Prints the median time of a search to the end of N receives: in the caches; after the program has pushed them out;
/// then warmed by a heater on another core; and by one on this core. `seconds` for each.
void compare_heating(double seconds);

}  // namespace canele::comm
