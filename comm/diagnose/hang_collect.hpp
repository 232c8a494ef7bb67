// SPDX-License-Identifier: BSD-3-Clause
//
// Checks whether an engine hangs, and collects the content of a hang report.
//
// Called by the engine's idle threads and by canele_report; by a simulator that steps engines itself, now and then. Any
// thread may call it, without the engine's lock.
//
// The thread that checks may also write the report, or run the host's callback.
#pragma once

#include <cstdint>
#include <string>

#include "comm/diagnose/hang_report.hpp"

namespace canele::comm {

class Engine;

namespace hang {

/// Check, if a check is due, and write the report of a hang. If none is due, the cost is a clock read.
void check(Engine& engine);
void check(Engine& engine, std::uint64_t now_ns);

/// Collects the whole content of a report, now.
HangReport collect(Engine& engine, std::uint64_t now_ns);

/// Returns the text for canele_report.
std::string report(Engine& engine);

}  // namespace hang
}  // namespace canele::comm
