// SPDX-License-Identifier: BSD-3-Clause
//
// The predefined operators of reductions.
//
// Used by api/ (canele_operator_of). Constant tables: any thread may call these functions.
//
// Only operators.cpp is compiled with -O3: at -O2, g++ 12 does not vectorise loops of unknown length.
#pragma once

#include <canele/collectives.h>

#include <cstddef>

namespace canele::comm::operators {

inline constexpr int operator_count = CANELE_MINLOC + 1;
inline constexpr int element_count = CANELE_LONG_DOUBLE_INT + 1;

/// Returns nullptr if the type has no such operation. Both arguments must be in range.
canele_combine_fn kernel_of(canele_operation operation, canele_element element);
/// Returns the wide kernel or the plain one, whatever the processor supports.
canele_combine_fn kernel_of(canele_operation operation, canele_element element, bool wide);
/// Returns true if the processor can run the wide kernels.
bool has_wide();
/// Returns the bytes of one element in an array.
std::size_t size_of(canele_element element);
const char* name_of(canele_operation operation);
const char* name_of(canele_element element);

}  // namespace canele::comm::operators
