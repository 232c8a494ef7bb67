// SPDX-License-Identifier: BSD-3-Clause
//
// Measure: what a row of put, get, atomics or am tells. Any thread.
#pragma once

namespace canele::perf {

/// latency: the time of one operation or message. rate: how many a second, in windows.
enum class Measure { latency, rate };

inline const char* name_of(Measure measure) { return measure == Measure::latency ? "latency" : "rate"; }

/// Returns what makes samples of a row, us or a number per second. ns: of one operation or message.
inline double in_unit(Measure measure, double ns) { return measure == Measure::latency ? ns / 1e3 : 1e9 / ns; }

/// Returns the unit of those samples. rate: the name of the number per second.
inline const char* unit_of(Measure measure, const char* rate) { return measure == Measure::latency ? "us" : rate; }

/// Returns the digits behind the point in a table.
inline int digits_of(Measure measure) { return measure == Measure::latency ? 3 : 0; }

}  // namespace canele::perf
