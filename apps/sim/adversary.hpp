// SPDX-License-Identifier: BSD-3-Clause
//
// Adversary: plans what goes wrong in a world, and when it stops. One thread.
//
// All faults end at `until_ns`. After that the world must come to rest (safety first, then liveness).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "apps/sim/oracle.hpp"
#include "apps/sim/world.hpp"

namespace canele::sim {

/// How frequent each kind of fault is; 1: as usual, 0: none.
struct FaultPlan {
  double network = 1;   ///< delays, back-pressure, pending sends, short writes, registration failures, duplicates.
  double clogs = 1;     ///< channels and ranks that are clogged, partitions.
  double starving = 1;  ///< workers that do not run, slow ranks, busy locks.
  double deaths = 0;    ///< ranks killed; some return as another process.
  double rails = 0;     ///< rails cut.
  double hostile = 0;   ///< packets truncated and corrupted.
  double payload = 0;   ///< any bit of a packet flipped, in runs with checksums.
  double memory = 0;    ///< no memory for messages that must be kept.
  double buggify = 1;   ///< the engine itself takes rare paths.
};

/// The kinds of faults with their names for the user.
struct FaultKind {
  const char* name;
  double FaultPlan::*weight;
};
inline constexpr std::array<FaultKind, 9> fault_kinds = {{{"network", &FaultPlan::network},
                                                          {"clogs", &FaultPlan::clogs},
                                                          {"starving", &FaultPlan::starving},
                                                          {"deaths", &FaultPlan::deaths},
                                                          {"rails", &FaultPlan::rails},
                                                          {"hostile", &FaultPlan::hostile},
                                                          {"payload", &FaultPlan::payload},
                                                          {"memory", &FaultPlan::memory},
                                                          {"buggify", &FaultPlan::buggify}}};

class Adversary {
 public:
  Adversary(World& world, Oracle& oracle, FaultPlan plan, std::uint64_t until_ns);
  /// Sets the rates, and schedules the single faults on the timeline.
  void begin();
  /// Records that two ranks may have lost a rail.
  void note_loss(int a, int b) { cut_.insert({std::min(a, b), std::max(a, b)}); }
  /// Returns the injected faults, by kind.
  std::map<std::string, std::uint64_t> injected() const;

 private:
  void set_rates();
  void plan_clogs();
  void plan_starving();
  void plan_deaths();
  void come_back(int rank);
  void plan_rails();
  void end();
  void end_half_lost();
  bool gives_up(int rank, int peer) const;
  void swizzle();
  std::uint64_t some_time() { return dice_.under(until_ns_); }
  int some_rank() { return static_cast<int>(dice_.under(static_cast<std::uint64_t>(world_.options().ranks))); }
  Fabric& some_fabric() { return *world_.fabrics()[dice_.under(world_.fabrics().size())]; }

  World& world_;
  Oracle& oracle_;
  const FaultPlan plan_;
  const std::uint64_t until_ns_;
  Dice dice_, returns_;
  std::map<std::string, std::uint64_t> done_;
  std::set<std::pair<int, int>> cut_;  ///< pairs that have lost a rail
};

}  // namespace canele::sim
