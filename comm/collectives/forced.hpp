// SPDX-License-Identifier: BSD-3-Clause
//
// What CANELE_COLLECTIVES says: the algorithm of each operation for which no option of the call says one.
//
// Who: api/: canele_init checks it, a group keeps it. Threads: any; no state.
// Surprise: an algorithm that an operation does not have is an error of canele_init, not of the call.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "comm/collectives/algorithms.hpp"

namespace canele::comm::collectives {

inline constexpr int operations = static_cast<int>(Operation::exscan) + 1;
inline constexpr int algorithms = static_cast<int>(Algorithm::halving_doubling) + 1;

/// By operation; automatic: the model decides.
using Forced = std::array<Algorithm, operations>;

/// "auto", or a list "bcast=chain,allreduce=ring". False, and *why: what is wrong and what there is.
bool parse_forced(std::string_view text, Forced* forced, std::string* why);

/// "flat, binomial, chain"
std::string algorithms_of(Operation operation);

}  // namespace canele::comm::collectives
