// SPDX-License-Identifier: BSD-3-Clause
//
// The measure `notified` of puts: half a round trip of puts that notify a counter. Main thread only.
#pragma once

#include "one_sided.hpp"

namespace canele::perf {

/// Measures on both ranks. Throws if an operation fails or its data is wrong.
OneSidedResult measure_notified(Job& job, const Options& options, const OneSidedCase& one);

}  // namespace canele::perf
