// SPDX-License-Identifier: BSD-3-Clause
//
// Measure: what a row of put, get, atomics or am tells. Any thread.
#pragma once

namespace canele::perf {

/// latency: the time of one operation or message. rate: how many a second, in windows. notified: half a round trip of
/// puts that notify.
enum class Measure { latency, rate, notified };

inline const char* name_of(Measure measure) {
  if (measure == Measure::notified) return "notified";
  return measure == Measure::latency ? "latency" : "rate";
}

/// Returns what makes samples of a row, us or a number per second. ns: of one operation or message.
inline double in_unit(Measure measure, double ns) { return measure == Measure::rate ? 1e9 / ns : ns / 1e3; }

/// Returns the unit of those samples. rate: the name of the number per second.
inline const char* unit_of(Measure measure, const char* rate) { return measure == Measure::rate ? rate : "us"; }

/// Returns the digits behind the point in a table.
inline int digits_of(Measure measure) { return measure == Measure::rate ? 0 : 3; }

}  // namespace canele::perf
