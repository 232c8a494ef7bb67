// SPDX-License-Identifier: BSD-3-Clause
//
// Coverage: which transitions of the protocols the runs have seen. Buggify: which places of the engine misbehave in a
// run.
//
// One thread. The coverage marks are counted for the whole process, not per run.
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
/// Returns all coverage marks of the engine, by name; marks of equal name are combined.
std::vector<Seen> coverage_marks();
/// Returns all places that may misbehave, and how often they have.
std::vector<Seen> all_buggify();
/// Makes some of the places misbehave now and then in this run. `share`: the fraction of places that do; 0: none.
/// `memory_share`: the fraction of those places that simulate a lack of memory.
void begin_buggify(std::uint64_t seed, double share, double memory_share);
void end_buggify();

}  // namespace canele::sim
