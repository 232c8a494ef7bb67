// SPDX-License-Identifier: BSD-3-Clause
//
// Marks: which transitions of the protocols the runs have seen; buggify: which places of the engine misbehave in a run.
//
// Who: canele-sim. Threads: one. Surprise: the marks are counted for the whole process, not per run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace canele::sim {

struct Seen {
  std::string name;
  std::uint64_t hits = 0;
  bool rare = false;
};
/// All marks of the engine, by name; places of one name together.
std::vector<Seen> all_marks();
/// All places that may misbehave, and how often they have.
std::vector<Seen> all_buggify();
/// In this run some of the places misbehave now and then. `share`: of them that do; 0: none. `memory_share`: of those
/// where there is no memory.
void begin_buggify(std::uint64_t seed, double share, double memory_share);
void end_buggify();

}  // namespace canele::sim
