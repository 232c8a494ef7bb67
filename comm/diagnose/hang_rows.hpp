// SPDX-License-Identifier: BSD-3-Clause
//
// The pending requests of an engine, as rows of a hang report.
//
// Used by hang_collect.cpp, under the engine's lock: one thread at a time.
//
// There is no list of all pending requests, since every message would pay for it. They are found in the structures of
// each state:
//
//   sends:     backlogs ─▶ packets with drivers ─▶ Engine::sends (announced, synchronous)
//   receives:  matcher ─▶ Engine::transfers, Engine::all_copies
#pragma once

#include <cstdint>
#include <vector>

#include "comm/diagnose/hang_report.hpp"
#include "comm/state/under_lock.hpp"

namespace canele::comm {

class Engine;

namespace hang {

/// Fills in sends and receives. `waited`: sorted addresses of the words that threads wait for.
void collect_requests(Engine& engine, const std::vector<const void*>& waited, std::uint64_t now_ns,
                      HangReport& report) CANELE_UNDER_LOCK;

}  // namespace hang
}  // namespace canele::comm
