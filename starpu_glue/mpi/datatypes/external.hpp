// SPDX-License-Identifier: BSD-3-Clause
//
// MPI's data representation external32: big-endian, with sizes that do not depend on the machine.
//
// Pure functions of the program's data. Any thread.
#pragma once

#include <cstdint>

#include "starpu_glue/mpi/datatypes/type.hpp"

namespace canele::mpi {

/// Returns the bytes of one element in external32. They are never more than it has in memory.
std::int64_t external_size(const Type& type);

/// Convert all data of a payload of `count` elements. Return an MPI code: MPI_ERR_VALUE_TOO_LARGE if a number of the
/// program does not fit.
int to_external(const Payload& payload, std::int64_t count, const Type& type, char* external);
int from_external(const Payload& payload, std::int64_t count, const Type& type, const char* external);

}  // namespace canele::mpi
