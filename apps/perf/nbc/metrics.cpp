// SPDX-License-Identifier: BSD-3-Clause
//
// The formulas.
#include "metrics.hpp"

#include <algorithm>
#include <cassert>

namespace canele::perf::nbc {

double global_time(std::span<const double> starts, std::span<const double> ends) {
  assert(!starts.empty() && starts.size() == ends.size());
  return *std::max_element(ends.begin(), ends.end()) - *std::min_element(starts.begin(), starts.end());
}

double r_overhead(double total, References alone) {
  return (total - std::max(alone.comp, alone.comm)) / std::min(alone.comp, alone.comm);
}

double r_comm(const Phases& rank, References alone) { return (rank.call + rank.wait) / alone.comm; }

double r_comp_slowdown(const Phases& rank, References alone) { return rank.comp / alone.comp; }

double r_mpi_impact(double with_library, double without) { return with_library / without; }

double ideal_r_comm(References alone) { return std::max(0.0, 1 - alone.comp / alone.comm); }

double r_overhead_by_ratios(double comp_ratio, double comm_ratio, References alone) {
  return r_overhead(comp_ratio * alone.comp + comm_ratio * alone.comm, alone);
}

Diagnosis diagnose(double comp_ratio, double comm_ratio, double overhead) {
  constexpr double tenth = 0.1;
  if (overhead <= tenth) return Diagnosis::overlapped;
  if (comp_ratio > 1 + tenth) {
    return comm_ratio > 1 + tenth ? Diagnosis::contention : Diagnosis::computation_slowed;
  }
  return overhead < 1 - tenth ? Diagnosis::communication_slowed : Diagnosis::no_progress;
}

const char* name_of(Diagnosis diagnosis) {
  switch (diagnosis) {
    case Diagnosis::overlapped:
      return "overlapped";
    case Diagnosis::no_progress:
      return "no progress";
    case Diagnosis::computation_slowed:
      return "computation slowed";
    case Diagnosis::contention:
      return "contention";
    case Diagnosis::communication_slowed:
      return "partly overlapped";
  }
  return "";
}

double omb_overlap(double overall, double compute, double pure) {
  return std::max(0.0, 100 - 100 * (overall - compute) / pure);
}

double imb_overlap(double pure, double compute, double overlapped) {
  return 100 * (pure + compute - overlapped) / std::max(pure, compute);
}

double delay_benefit(double undelayed, double delay, double delayed) { return (undelayed + delay - delayed) / delayed; }

double overlap_availability(double coll, double comp, double together) { return (coll + comp - together) / together; }

}  // namespace canele::perf::nbc
