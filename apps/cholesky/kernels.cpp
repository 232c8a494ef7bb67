// SPDX-License-Identifier: BSD-3-Clause
//
// The kernels, by OpenBLAS and LAPACKE.
//
// The upper half of a diagonal tile keeps its initial values, and no kernel reads it.
#include "kernels.hpp"

#include <cblas.h>
#include <lapacke.h>

#include <algorithm>
#include <stdexcept>
#include <string>

namespace canele::cholesky {

void use_one_thread_each() { openblas_set_num_threads(1); }

void factor(Block a) {
  const lapack_int info = LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'L', a.rows, a.values, a.rows);
  if (info == 0) return;
  throw std::runtime_error("the matrix is not positive definite (dpotrf: " + std::to_string(info) +
                           "): data was damaged");
}

void solve(ConstBlock l, Block b) {
  cblas_dtrsm(CblasColMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, b.rows, b.columns, 1.0, l.values, l.rows,
              b.values, b.rows);
}

void update_diagonal(ConstBlock a, Block c) {
  cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, c.rows, a.columns, -1.0, a.values, a.rows, 1.0, c.values,
              c.rows);
}

void update(ConstBlock a, ConstBlock b, Block c) {
  cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, c.rows, c.columns, a.columns, -1.0, a.values, a.rows, b.values,
              b.rows, 1.0, c.values, c.rows);
}

double element(std::uint64_t seed, int size, int row, int column) {
  const auto [low, high] = std::minmax(row, column);
  // splitmix64 (Steele, Lea, Flood 2014) of row and column
  std::uint64_t word = seed + (static_cast<std::uint64_t>(high) << 32 | static_cast<std::uint32_t>(low)) + 1;
  word *= 0x9e3779b97f4a7c15;
  word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
  word = (word ^ word >> 27) * 0x94d049bb133111eb;
  word ^= word >> 31;
  const double uniform = static_cast<double>(word >> 11) * 0x1p-53 - 0.5;
  return row == column ? uniform + size : uniform;
}

void fill(std::uint64_t seed, int size, int row, int column, Block tile) {
  for (int j = 0; j < tile.columns; ++j) {
    for (int i = 0; i < tile.rows; ++i) {
      tile.values[static_cast<std::ptrdiff_t>(j) * tile.rows + i] = element(seed, size, row + i, column + j);
    }
  }
}

}  // namespace canele::cholesky
