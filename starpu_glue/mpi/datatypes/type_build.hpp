// SPDX-License-Identifier: BSD-3-Clause
//
// Shared parts of the datatype code (type*.cpp): limits, stacking of runs, building a new type.
//
// Any thread; a type that is built belongs to its thread until it is finished. The nesting limit bounds the recursion
// of the layout code.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "starpu_glue/mpi/datatypes/type.hpp"

namespace canele::mpi {

constexpr int kMaxNesting = 200;

/// Returns `count` copies of a run, `stride` bytes apart, as one run; nothing if no single run is equal to them.
std::optional<Run> stack_runs(const Run& run, std::ptrdiff_t first, std::size_t count, std::ptrdiff_t stride);

/// Takes an empty type from the pool, with one reference. Returns an MPI code.
int new_type(int combiner, Type** made);
/// Keeps `element` alive as a constituent of `type`. Returns an MPI code.
int add_constituent(Type& type, Type& element);
/// Returns the finished type in *made, or frees it after an error. Returns `code`.
int finish_type(int code, Type* type, Type** made);
/// Checks that the size of count * block elements fits into 63 bits. Returns an MPI code.
int check_size(std::int64_t count, std::int64_t block, const Type& element);

/// Keeps the arguments of the call that made a type, as MPI_Type_get_contents returns them.
class Record {
 public:
  Record(Type& type, Form form) : contents_(type.contents), large_(form == Form::large) {}

  void integer(std::int64_t value) {
    constexpr std::int64_t least = std::numeric_limits<int>::min(), most = std::numeric_limits<int>::max();
    contents_.integers.push_back(static_cast<int>(std::clamp(value, least, most)));
  }
  void count(std::int64_t value) { large_ ? contents_.counts.push_back(value) : integer(value); }
  void address(std::int64_t value) { (large_ ? contents_.counts : contents_.addresses).push_back(value); }
  void counts(const Integers& values) {
    for (std::size_t i = 0; i < values.size(); ++i) count(values[i]);
  }
  void addresses(const Integers& values) {
    for (std::size_t i = 0; i < values.size(); ++i) address(values[i]);
  }

 private:
  Contents& contents_;
  bool large_;
};

/// Builds a new type while its pieces are placed. What does not fit into 63 bits is noticed, and placed no more.
class Builder {
 public:
  explicit Builder(Type& type) : type_(type) {}

  /// Sums and products of bytes.
  std::int64_t sum(std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    too_large_ = __builtin_add_overflow(a, b, &result) || too_large_;
    return result;
  }
  std::int64_t product(std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    too_large_ = __builtin_mul_overflow(a, b, &result) || too_large_;
    return result;
  }

  /// Updates bounds, alignment and nesting for `count` elements from `first` on, `stride` bytes apart.
  void extend_bounds(const Type& element, std::ptrdiff_t first, std::size_t count, std::ptrdiff_t stride);
  void place(const Run& run);
  /// Completes the bounds. Returns an MPI code.
  int finish();

 private:
  std::vector<Run>& runs() { return type_.many; }
  bool join(const Run& run);

  Type& type_;
  bool any_ = false;        // an element, possibly an empty one, has set the bounds
  bool bytes_ = false;      // a byte has set the true bounds
  bool too_large_ = false;  // beyond 63 bits
};

}  // namespace canele::mpi
