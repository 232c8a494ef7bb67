// SPDX-License-Identifier: BSD-3-Clause
//
// Wording: how messages name several ranks at once, so that one line says what would otherwise fill a screen. Any
// thread; no state.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace canele::run {

/// Returns "rank 3"; "ranks 0-2, 5"; "all 4 ranks" if these are all of several. Takes them in any order, without
/// duplicates.
std::string name_ranks(std::vector<int> ranks, int of);

/// Returns "0-2,5": numbers in rising order, as the kernel writes sets of processing units.
std::string name_numbers(const std::vector<int>& numbers, const char* between);

/// Returns what the letter of /proc/PID/stat means: "asleep", "stopped", ...
std::string name_state(char state);

/// Returns "rank 0 is asleep, ranks 1-3 are stopped", from states and the ranks in them.
std::string name_states(const std::map<char, std::vector<int>>& states, int of);

}  // namespace canele::run
