// SPDX-License-Identifier: BSD-3-Clause
//
// Checks of the programs of this directory that run as ranks of a job. Any thread.
#pragma once

#include <canele/canele.h>

#include <atomic>
#include <cstdint>
#include <cstdio>

#include "tests/gpu/driver.hpp"

namespace canele::gpu_test {

inline std::atomic<int> failures{0};

/// Counts and prints a failed check, and goes on.
inline bool expect(bool right, const char* what, int line) {
  if (right) return true;
  if (++failures <= 20) std::fprintf(stderr, "line %d: not so: %s (%s)\n", line, what, canele_error_detail());
  return false;
}
#define EXPECT(condition) canele::gpu_test::expect((condition), #condition, __LINE__)

/// Returns the exit code of the process. No copy may have used host memory that is not pinned.
inline int end_checks(int rank) {
  std::uint64_t pageable = 0;
  if (driver().is_fake()) driver().fakeCudaPageable(&pageable);
  EXPECT(pageable == 0);
  if (failures != 0) std::fprintf(stderr, "rank %d: %d failures\n", rank, failures.load());
  return failures == 0 ? 0 : 1;
}

}  // namespace canele::gpu_test
