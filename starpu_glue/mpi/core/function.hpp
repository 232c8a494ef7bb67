// SPDX-License-Identifier: BSD-3-Clause
//
// Names of the functions, and the class of each in Reynier's model of progression: blocking, init, test, wait, other.
//
// Used by Call, profile.cpp and tests; constants, so any thread may read them. The compiler makes a Function from its
// name, so that the entry points say Call("MPI_Send") and the profile still has an index. A name that is missing below
// does not compile.
//
// F. Reynier: A study on progression of MPI communications using dedicated resources, 2022, section 6.1.3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace canele::mpi {

enum class CallClass : std::uint8_t { blocking, init, test, wait, other };
inline constexpr std::size_t kCallClasses = 5;
inline constexpr std::string_view kCallClassNames[kCallClasses] = {"blocking", "init", "test", "wait", "other"};

struct FunctionName {
  std::string_view name;
  CallClass call_class;
};

#include "function_names.hpp"  // kFunctions, in the order of their names; made from mpi/functions

inline constexpr std::size_t kFunctionCount = std::size(kFunctions);

/// One of the functions above.
class Function {
 public:
  consteval Function(const char* name) : name_(name) {  // implicit: Call("MPI_Send") makes one
    const std::string_view wanted(name);
    std::size_t end = kFunctionCount;
    while (index_ < end) {
      const std::size_t middle = (index_ + end) / 2;
      if (kFunctions[middle].name < wanted) {
        index_ = static_cast<std::uint16_t>(middle + 1);
      } else {
        end = middle;
      }
    }
    if (index_ == kFunctionCount || kFunctions[index_].name != wanted) missing_above();
  }

  const char* name() const { return name_; }
  std::size_t index() const { return index_; }
  CallClass call_class() const { return kFunctions[index_].call_class; }

 private:
  static void missing_above() {}  // not constexpr, so a call to it does not compile

  const char* name_;
  std::uint16_t index_ = 0;  ///< in kFunctions
};

}  // namespace canele::mpi
