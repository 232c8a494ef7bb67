// SPDX-License-Identifier: BSD-3-Clause
//
// The pending requests of an engine, as rows of a hang report.
//
// Who: hang_collect.cpp. Threads: under the engine's lock.
// Surprise: no list of all pending requests is kept, since every message would pay for it: they are found where each
//     state keeps its own.
//
//   sends:     backlogs ─▶ packets with drivers ─▶ Engine::sends (announced, synchronous)
//   receives:  matcher ─▶ Engine::transfers, pulls
#pragma once

#include <cstdint>
#include <vector>

#include "comm/observe/hang_report.hpp"

namespace canele::comm {

class Engine;

namespace hang {

/// Fills sends and receives. `waited`: sorted addresses of the words that threads wait for.
void collect_requests(Engine& engine, const std::vector<const void*>& waited, std::uint64_t now_ns, HangReport& report);

}  // namespace hang
}  // namespace canele::comm
