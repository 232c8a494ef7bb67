// SPDX-License-Identifier: BSD-3-Clause
//
// Looking whether an engine hangs, and collecting what a hang report tells.
//
// Who: the engine's idle threads, canele_report; a simulator that steps engines by itself, now and then.
// Threads: any, without the engine's lock.
// Surprise: whoever looks may be the one who writes the report, or runs the host's callback.
#pragma once

#include <cstdint>
#include <string>

#include "comm/observe/hang_report.hpp"

namespace canele::comm {

class Engine;

namespace hang {

/// Looks, if that is due; writes the report of a hang. Costs a clock read where it is not.
void look(Engine& engine);
void look(Engine& engine, std::uint64_t now_ns);

/// All that a report tells, now.
HangReport collect(Engine& engine, std::uint64_t now_ns);

/// The text for canele_report.
std::string report(Engine& engine);

}  // namespace hang
}  // namespace canele::comm
