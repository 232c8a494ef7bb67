// SPDX-License-Identifier: BSD-3-Clause
//
// Building a datatype: bounds and runs of its pieces. Any thread; each type has one builder.
#include "starpu_glue/mpi/datatypes/type_build.hpp"

#include "starpu_glue/mpi/core/error.hpp"

namespace canele::mpi {

void Builder::extend_bounds(const Type& element, std::ptrdiff_t first, std::size_t count, std::ptrdiff_t stride) {
  if (count == 0) return;
  const std::ptrdiff_t last = sum(first, product(static_cast<std::ptrdiff_t>(count - 1), stride));
  const std::ptrdiff_t low = std::min(first, last);
  const std::ptrdiff_t high = std::max(first, last);
  if (element.explicit_bounds && !type_.explicit_bounds) any_ = false;  // from now on only markers count (MPI 4.1.6)
  if (element.explicit_bounds || !type_.explicit_bounds) {
    const std::ptrdiff_t lower = sum(low, element.lower), upper = sum(high, element.upper);
    type_.lower = any_ ? std::min(type_.lower, lower) : lower;
    type_.upper = any_ ? std::max(type_.upper, upper) : upper;
    any_ = true;
  }
  if (element.size != 0) {
    const std::ptrdiff_t lower = sum(low, element.true_lower), upper = sum(high, element.true_upper);
    type_.true_lower = bytes_ ? std::min(type_.true_lower, lower) : lower;
    type_.true_upper = bytes_ ? std::max(type_.true_upper, upper) : upper;
    bytes_ = true;
  }
  type_.alignment = std::max(type_.alignment, element.alignment);
  type_.explicit_bounds = type_.explicit_bounds || element.explicit_bounds;
}

void Builder::place(const Run& run) {
  if (run.size() == 0 || too_large_) return;
  const std::int64_t size = sum(static_cast<std::int64_t>(type_.size), static_cast<std::int64_t>(run.size()));
  if (too_large_) return;
  if (!join(run)) {
    runs().push_back(run);
    runs().back().begin = type_.size;
  }
  type_.size = static_cast<std::size_t>(size);
}

int Builder::finish() {
  if (type_.many.size() == 1) {
    type_.single = type_.many.front();
    type_.many.clear();
  }
  if (!type_.explicit_bounds && !too_large_) {
    const auto alignment = static_cast<std::ptrdiff_t>(type_.alignment);
    std::ptrdiff_t extent = 0;
    if (__builtin_sub_overflow(type_.upper, type_.lower, &extent)) too_large_ = true;
    const std::ptrdiff_t remainder = extent % alignment;
    if (remainder > 0)  // MPI's epsilon: arrays of the type stay aligned
      type_.upper = sum(type_.upper, alignment - remainder);
  }
  std::ptrdiff_t extent = 0;
  if (too_large_ || __builtin_sub_overflow(type_.upper, type_.lower, &extent) ||
      __builtin_sub_overflow(type_.true_upper, type_.true_lower, &extent))
    return fail(MPI_ERR_COUNT, "the datatype would be larger than the address space");
  return MPI_SUCCESS;
}

/// Extends the last run if the new one continues it.
bool Builder::join(const Run& run) {
  if (runs().empty() || !run.contiguous()) return false;
  Run& last = runs().back();
  if (last.child != nullptr) return false;
  if (last.count == 1 && last.first + static_cast<std::ptrdiff_t>(last.block) == run.first) {
    last.block += run.block;
    return true;
  }
  if (last.block != run.block) return false;
  if (last.count == 1) {
    if (__builtin_sub_overflow(run.first, last.first, &last.stride)) return false;
    last.count = 2;
    return true;
  }
  std::ptrdiff_t next = 0;
  if (__builtin_mul_overflow(static_cast<std::ptrdiff_t>(last.count), last.stride, &next) ||
      __builtin_add_overflow(next, last.first, &next) || run.first != next)
    return false;
  ++last.count;
  return true;
}

}  // namespace canele::mpi
