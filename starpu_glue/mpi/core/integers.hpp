// SPDX-License-Identifier: BSD-3-Clause
//
// Arguments of functions with a form for large counts (MPI_X and MPI_X_c): one function behind serves both.
//
// Pure values. Any thread.
#pragma once

#include <mpi.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>

namespace canele::mpi {

/// The form of a function that the program called: with int, or with MPI_Count.
enum class Form : bool { small, large };

/// An array of the program, of int or of MPI_Count, which is read in place. It must outlive the object.
class Integers {
 public:
  Integers() = default;
  /// The length is 0 if it is unknown. Then only the caller knows which indexes exist.
  Integers(const int* values, std::int64_t length) : small_(values), length_(static_cast<std::size_t>(length)) {}
  Integers(const std::int64_t* values, std::int64_t length)
      : large_(values), length_(static_cast<std::size_t>(length)) {}
  template <std::ranges::contiguous_range Range>
  Integers(const Range& values) : Integers(std::ranges::data(values), std::ranges::ssize(values)) {}

  std::size_t size() const { return length_; }
  /// The array itself, to find out whether it is NULL.
  const void* data() const { return large_ != nullptr ? static_cast<const void*>(large_) : small_; }
  std::int64_t operator[](std::size_t index) const { return large_ != nullptr ? large_[index] : small_[index]; }

 private:
  const int* small_ = nullptr;
  const std::int64_t* large_ = nullptr;
  std::size_t length_ = 0;
};

/// A function of the program, which takes int or MPI_Count.
template <class Small, class Large>
struct Either {
  Small* small = nullptr;
  Large* large = nullptr;

  Either() = default;
  Either(Small* function) : small(function) {}  // implicit: entry points pass the function that they get
  Either(Large* function) : large(function) {}
  explicit operator bool() const { return small != nullptr || large != nullptr; }
};

}  // namespace canele::mpi
