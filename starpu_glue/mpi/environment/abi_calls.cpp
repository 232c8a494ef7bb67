// SPDX-License-Identifier: BSD-3-Clause
//
// What programs ask about the standard ABI, and the answer to calls of functions that do not exist here. Any thread.
//
// The library's types and constants are the ABI's. Sizes and truth values of Fortran are those of the compilers that
// mpif.h is for, so a program cannot set them.
#include <mpi.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "calls/handles.hpp"
#include "starpu_glue/mpi/communicators/call.hpp"
#include "starpu_glue/mpi/communicators/communicator.hpp"
#include "starpu_glue/mpi/infos/info.hpp"

namespace canele::mpi {
namespace {

/// The datatypes of Fortran that a compiler may lack. The library has all of them.
constexpr std::string_view kOptional[] = {"logical1", "logical2",  "logical4",  "logical8",      "logical16",
                                          "integer1", "integer2",  "integer4",  "integer8",      "integer16",
                                          "real2",    "real4",     "real8",     "real16",        "complex4",
                                          "complex8", "complex16", "complex32", "double_complex"};

/// Writes a LOGICAL of the type of an integer.
template <class Integer>
void write_truth(void* logical_true, void* logical_false) {
  *static_cast<Integer*>(logical_true) = 1;
  *static_cast<Integer*>(logical_false) = 0;
}

}  // namespace

namespace calls {

int abi_get_version(int* abi_major, int* abi_minor) {
  *abi_major = 1;
  *abi_minor = 0;
  return MPI_SUCCESS;
}

int abi_get_info(MPI_Info* info) {
  return new_info({{"mpi_aint_size", std::to_string(sizeof(MPI_Aint))},
                   {"mpi_count_size", std::to_string(sizeof(MPI_Count))},
                   {"mpi_offset_size", std::to_string(sizeof(MPI_Offset))}},
                  info);
}

int abi_get_fortran_info(MPI_Info* info) {
  const std::string integer = std::to_string(sizeof(MPI_Fint));
  InfoPairs pairs{{"mpi_logical_size", integer},
                  {"mpi_integer_size", integer},
                  {"mpi_real_size", std::to_string(sizeof(float))},
                  {"mpi_double_precision_size", std::to_string(sizeof(double))}};
  for (const std::string_view type : kOptional) pairs.emplace_back("mpi_" + std::string(type) + "_supported", "true");
  return new_info(std::move(pairs), info);
}

int abi_set_fortran_info(MPI_Info info) {
  InfoPairs pairs;
  if (const int code = info_pairs(info, &pairs); code != MPI_SUCCESS) return code;
  return fail(MPI_ERR_ABI, "the sizes of Fortran's types are known already");
}

int abi_get_fortran_booleans(int logical_size, void* logical_true, void* logical_false, int* is_set) {
  if (const int code = given({{"logical_true", logical_true}, {"logical_false", logical_false}}); code != MPI_SUCCESS)
    return code;
  switch (logical_size) {
    case 1:
      write_truth<std::int8_t>(logical_true, logical_false);
      break;
    case 2:
      write_truth<std::int16_t>(logical_true, logical_false);
      break;
    case 4:
      write_truth<std::int32_t>(logical_true, logical_false);
      break;
    case 8:
      write_truth<std::int64_t>(logical_true, logical_false);
      break;
    default:
      return fail(MPI_ERR_ARG, "logical_size is %d; expected: 1, 2, 4 or 8", logical_size);
  }
  *is_set = 1;
  return MPI_SUCCESS;
}

int abi_set_fortran_booleans(int, void* logical_true, void* logical_false) {
  if (const int code = given({{"logical_true", logical_true}, {"logical_false", logical_false}}); code != MPI_SUCCESS)
    return code;
  return fail(MPI_ERR_ABI, "the truth values of Fortran are known already");
}

}  // namespace calls

/// The functions of libmpi_abi that do not exist here call it.
extern "C" CANELE_MPI_API int canele_mpi_lacks(const char* function);
extern "C" int canele_mpi_lacks(const char* function) {
  const int code = fail(MPI_ERR_UNSUPPORTED_OPERATION, "%s does not exist in Canelé", function);
  // Errors of files go to the handler of a file, which is MPI_ERRORS_RETURN.
  if (std::string_view(function).starts_with("MPI_File_")) return code;
  const Communicator* const target = phase() == Phase::running && !in_child ? world() : nullptr;
  report_error(function, code, target ? target->error_target() : ErrorTarget{MPI_ERRORS_ARE_FATAL, nullptr});
  return code;
}

}  // namespace canele::mpi
