// SPDX-License-Identifier: BSD-3-Clause
//
// The predefined operators of reductions.
//
// Who: api/ (canele_operator_of). Threads: any; constants.
// Surprise: operators.cpp alone is compiled with -O3: at -O2 g++ 12 leaves loops of unknown length as they are.
#pragma once

#include <canele/collectives.h>

#include <cstddef>

namespace canele::comm::collectives {

inline constexpr int operator_count = CANELE_MINLOC + 1;
inline constexpr int element_count = CANELE_LONG_DOUBLE_INT + 1;

/// nullptr: the type has no such operation. Both are in range.
canele_combine_fn kernel_of(canele_operation operation, canele_element element);
/// The same, the wide one or the plain one, whatever the processor has.
canele_combine_fn kernel_of(canele_operation operation, canele_element element, bool wide);
/// Whether the processor can run the wide ones.
bool has_wide();
/// Bytes of one element in an array.
std::size_t size_of(canele_element element);
const char* name_of(canele_operation operation);
const char* name_of(canele_element element);

}  // namespace canele::comm::collectives
