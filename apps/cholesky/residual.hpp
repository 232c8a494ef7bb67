// SPDX-License-Identifier: BSD-3-Clause
//
// Residual: whether L Lᵀ is the matrix, without ever having either in one place.
//
// Who: main, after a run. Threads: the main thread.
// Surprise: L Lᵀ x is compared with A x for one x of random signs: a damaged element changes a whole row of the
//     difference, and two products with vectors cost n² instead of n³. (Freivalds, "Probabilistic machines can use less
//     running time", 1977: a wrong product passes with a chance of one half at most for each wrong row, so several x
//     are taken.)
#pragma once

#include <canele/canele.hpp>
#include <cstdint>

#include "factorisation.hpp"

namespace canele::cholesky {

/// What LAPACK's own tests take for right: |A x - L Lᵀ x| <= 30 n eps |A| |x|, in the maximum norm.
inline constexpr double residual_limit = 30;

/// |A x - L Lᵀ x| / (n eps |A| |x|), the largest of several x. All ranks call it; all get the value.
double residual(canele::session& session, const Tiles& tiles, std::uint64_t seed);

}  // namespace canele::cholesky
