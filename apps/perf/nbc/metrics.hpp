// SPDX-License-Identifier: BSD-3-Clause
//
// Figures computed from times. They are the ratios of F. Reynier's thesis (Bordeaux 2022, section 4.1) and their
// diagnosis, and CRESTA's delay benefit and overlap availability. OMB's and IMB's figures for the same times are here,
// too.
//
// Threads: pure functions. Any unit of time, if all arguments use it. No figure is clamped unless its source clamps it:
// a ratio below 0 means that a reference was too slow.
#pragma once

#include <span>

namespace canele::perf::nbc {

/// Both alone: fixed work without communication, and the collective waited for at once.
struct References {
  double comp, comm;
};

/// The time of one rank in each phase; the phases follow each other.
struct Phases {
  double call, comp, wait;
  double total() const { return call + comp + wait; }
};

/// Returns the time from the first start to the last end over all ranks, because a mean over ranks would hide the
/// slowest.
double global_time(std::span<const double> starts, std::span<const double> ends);

/// Returns the lost fraction of what could be hidden. 0: overlapped; 1: one after the other; above 1: slower than that.
double r_overhead(double total, References alone);
/// Returns the time in the library divided by that without computation.
double r_comm(const Phases& rank, References alone);
/// Returns the computation beside communication divided by that without.
double r_comp_slowdown(const Phases& rank, References alone);
/// Returns the computation with an idle library divided by that before it was started.
double r_mpi_impact(double with_library, double without);
/// Returns r_comm for perfect progress: the part of the collective that outlasts the computation.
double ideal_r_comm(References alone);
/// Returns r_overhead of a rank from its two ratios. Exact, because its phases follow each other.
double r_overhead_by_ratios(double comp_ratio, double comm_ratio, References alone);

enum class Diagnosis {
  overlapped,            ///< nothing lost.
  no_progress,           ///< all communication in wait.
  computation_slowed,    ///< progress takes the processor from the computation.
  contention,            ///< computation_slowed, and nothing is overlapped.
  communication_slowed,  ///< communication takes longer, but part of it is hidden.
};

/// Returns the diagnosis of the thesis's table, section 4.1.3. A ratio within a tenth of 1 counts as 1.
Diagnosis diagnose(double comp_ratio, double comm_ratio, double overhead);
const char* name_of(Diagnosis diagnosis);

/// Returns percent, as the OSU micro-benchmarks print it (5.7).
double omb_overlap(double overall, double compute, double pure);
/// Returns percent, as Intel's MPI benchmarks print it (IMB-NBC 2018).
double imb_overlap(double pure, double compute, double overlapped);

/// CRESTA: returns how much of a late start of one rank the collective hides, divided by the time that it then takes.
/// 0: nothing.
double delay_benefit(double undelayed, double delay, double delayed);
/// CRESTA: returns what is saved of the sum of both alone, divided by the time of both together.
double overlap_availability(double coll, double comp, double together);

}  // namespace canele::perf::nbc
