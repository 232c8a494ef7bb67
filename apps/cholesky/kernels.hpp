// SPDX-License-Identifier: BSD-3-Clause
//
// The four kernels of a tile Cholesky, and the matrix that is factorised.
//
// Any thread may call them; one thread at a time writes a tile. BLAS would start threads of its own.
// use_one_thread_each() prevents that, because the parallelism comes from the tasks.
#pragma once

#include <cstdint>

namespace canele::cholesky {

/// A tile in memory, column by column, without gaps.
struct Block {
  double* values;
  int rows, columns;
};
struct ConstBlock {
  const double* values;
  int rows, columns;
};

/// Makes BLAS use one thread per call. Call once, before the kernels.
void use_one_thread_each();

/// a := L with a = L Lᵀ (dpotrf). Throws std::runtime_error if a is not positive definite.
void factor(Block a);
/// b := b L⁻ᵀ (dtrsm).
void solve(ConstBlock l, Block b);
/// c := c - a aᵀ, the lower half (dsyrk).
void update_diagonal(ConstBlock a, Block c);
/// c := c - a bᵀ (dgemm).
void update(ConstBlock a, ConstBlock b, Block c);

/// Returns an element of the matrix. It is symmetric, pseudo-random in [-0.5, 0.5), with `size` added on the diagonal.
/// Hence it is positive definite (by Gershgorin's circles).
double element(std::uint64_t seed, int size, int row, int column);
/// Fills the tile whose first element is (row, column).
void fill(std::uint64_t seed, int size, int row, int column, Block tile);

}  // namespace canele::cholesky
