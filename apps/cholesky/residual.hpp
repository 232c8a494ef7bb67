// SPDX-License-Identifier: BSD-3-Clause
//
// Residual: checks that L Lᵀ is the matrix, without ever having either of them in one place. Used in the main thread.
//
// L Lᵀ x is compared with A x for a vector x of random signs. A damaged element changes a whole row of the difference.
// Two products with vectors cost n² instead of n³. Several vectors x are used, because a wrong product passes with a
// probability of at most one half for each wrong row.
//
// Source: Freivalds, "Probabilistic machines can use less running time", 1977.
#pragma once

#include <canele/canele.hpp>
#include <cstdint>

#include "factorisation.hpp"

namespace canele::cholesky {

/// The limit of LAPACK's own tests: |A x - L Lᵀ x| <= 30 n eps |A| |x|, in the maximum norm.
inline constexpr double residual_limit = 30;

/// Returns the largest value of |A x - L Lᵀ x| / (n eps |A| |x|) over several x. All ranks call it, and all get the
/// value.
double residual(canele::session& session, const Tiles& tiles, std::uint64_t seed);

}  // namespace canele::cholesky
