// SPDX-License-Identifier: BSD-3-Clause
//
// Finds the coverage marks: the linker gathers them in sections.
//
// A place is first made active for a run, and only then strikes with a probability. Runs thus differ in kind
// (FoundationDB's BUGGIFY).
#include "apps/sim/coverage.hpp"

#include <map>

#include "drivers/sim/timeline.hpp"
#include "ltask/coverage.hpp"

extern "C" {
extern canele::CoverageMark __start_canele_coverage[], __stop_canele_coverage[];  // NOLINT: the linker's names
extern canele::CoverageMark __start_canele_buggify[], __stop_canele_buggify[];    // NOLINT
}

namespace canele::sim {
namespace {

constexpr double strikes = 0.05;
drivers::sim::Dice buggify_dice(0);
std::uint64_t active_seed = 0;
double active_share = 0, active_memory_share = 0;

std::vector<Seen> gather(const CoverageMark* begin, const CoverageMark* end) {
  std::map<std::string, std::uint64_t> all;
  for (const CoverageMark* mark = begin; mark != end; ++mark) all[mark->name] += mark->hits;
  std::vector<Seen> seen;
  for (const auto& [name, hits] : all) {
    const bool rare = name.starts_with('~');
    seen.push_back({name.substr(rare ? 1 : 0), hits, rare});
  }
  return seen;
}

bool strike(const CoverageMark& place) {
  std::uint64_t name = 0;
  for (const char* c = place.name; *c != '\0'; ++c) name = name * 31 + static_cast<unsigned char>(*c);
  const bool memory = std::string_view(place.name).starts_with("no_memory");
  const double share = memory ? active_memory_share : active_share;
  return drivers::sim::Dice(active_seed ^ name).chance(share) && buggify_dice.chance(strikes);
}

}  // namespace

std::vector<Seen> coverage_marks() { return gather(__start_canele_coverage, __stop_canele_coverage); }
std::vector<Seen> all_buggify() { return gather(__start_canele_buggify, __stop_canele_buggify); }

void begin_buggify(std::uint64_t seed, double share, double memory_share) {
  buggify_dice = drivers::sim::Dice(seed ^ 0xb5297a4d);
  active_seed = seed;
  active_share = share;
  active_memory_share = memory_share;
  buggify = share > 0 || memory_share > 0 ? strike : nullptr;
}

void end_buggify() { buggify = nullptr; }

}  // namespace canele::sim
