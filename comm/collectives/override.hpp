// SPDX-License-Identifier: BSD-3-Clause
//
// The setting CANELE_COLLECTIVES: the algorithm of each operation for which the options of a call name none.
//
// canele_init checks it; each group keeps the result. Stateless: any thread may call it.
//
// An algorithm that an operation does not have is an error of canele_init, not of the call.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "comm/collectives/algorithms/algorithms.hpp"

namespace canele::comm::collectives {

inline constexpr int operations = static_cast<int>(Operation::exscan) + 1;
inline constexpr int algorithms = static_cast<int>(Algorithm::halving_doubling) + 1;

/// Indexed by operation; automatic: the model decides.
using AlgorithmOverrides = std::array<Algorithm, operations>;

/// Parses "auto", or a list such as "bcast=chain,allreduce=ring". On failure returns false, and *why names the error
/// and the valid values.
bool parse_overrides(std::string_view text, AlgorithmOverrides* overrides, std::string* why);

/// Returns the names of the operation's algorithms, as in "flat, binomial, chain".
std::string algorithms_of(Operation operation);

}  // namespace canele::comm::collectives
