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
#include <string_view>

#include "function_names.hpp"  // made from mpi/functions

namespace canele::mpi {

enum class CallClass : std::uint8_t { blocking, init, test, wait, other };
inline constexpr std::size_t kCallClasses = 5;
inline constexpr std::string_view kCallClassNames[kCallClasses] = {"blocking", "init", "test", "wait", "other"};

/// The functions of each class, and last those of class `other` that are no MPI functions. Only the compiler looks one
/// up.
inline constexpr std::string_view kFunctionsOfClass[] = {
    kFunctions_blocking,
    kFunctions_init,
    kFunctions_test,
    kFunctions_wait,
    kFunctions_other,
    " nm_mpi_comm nm_mpi_nmad_dest canele_mpi_comm_rank canele_mpi_data_get canele_mpi_data_release"
    " canele_mpi_engine canele_mpi_job_rank canele_mpi_session "};

/// One of the functions above.
class Function {
 public:
  consteval Function(const char* name) : name_(name) {  // implicit: Call("MPI_Send") makes one
    const std::string_view wanted(name);
    for (const std::string_view functions : kFunctionsOfClass) {
      for (std::size_t from = 1; from < functions.size(); ++index_) {
        const std::size_t end = functions.find(' ', from);
        if (functions.substr(from, end - from) == wanted) return;
        from = end + 1;
      }
      if (class_ != static_cast<std::uint8_t>(CallClass::other)) ++class_;
    }
    missing_above();
  }

  const char* name() const { return name_; }
  std::size_t index() const { return index_; }
  CallClass call_class() const { return static_cast<CallClass>(class_); }

 private:
  static void missing_above() {}  // not constexpr, so a call to it does not compile

  const char* name_;
  std::uint16_t index_ = 0;  ///< index among all functions
  std::uint8_t class_ = 0;
};

constexpr std::size_t count_functions() {
  std::size_t count = 0;
  for (const std::string_view functions : kFunctionsOfClass) {
    for (std::size_t at = 1; at < functions.size(); ++at) count += functions[at] == ' ' ? 1 : 0;
  }
  return count;
}
inline constexpr std::size_t kFunctionCount = count_functions();

}  // namespace canele::mpi
