// SPDX-License-Identifier: BSD-3-Clause
//
// What is computed from times: the ratios of F. Reynier's thesis (Bordeaux 2022, section 4.1) and their diagnosis,
// CRESTA's delay benefit and overlap availability, and what OMB and IMB print for the same times.
//
// Who: the benchmarks of this directory. Threads: pure functions; any unit of time, the same one throughout.
// Surprise: none of them is clamped where its source does not: a ratio below 0 says that a reference was too slow.
#pragma once

#include <span>

namespace canele::perf::nbc {

/// The two alone: fixed work without communication, and the collective waited for at once.
struct References {
  double comp, comm;
};

/// What one rank has spent where, one after the other.
struct Phases {
  double call, comp, wait;
  double total() const { return call + comp + wait; }
};

/// From the first start to the last end over all ranks: a mean over ranks would hide the slowest.
double global_time(std::span<const double> starts, std::span<const double> ends);

/// What was lost of all that could be hidden: 0 overlapped, 1 one after the other, above 1 slower than that.
double r_overhead(double total, References alone);
/// Time in the library to that without computation.
double r_comm(const Phases& rank, References alone);
/// Computation beside communication to that without.
double r_comp_slowdown(const Phases& rank, References alone);
/// Computation while the library is there and does nothing, to that before it was started.
double r_mpi_impact(double with_library, double without);
/// r_comm if progress were perfect: what of the collective outlasts the computation.
double ideal_r_comm(References alone);
/// r_overhead of a rank by its two ratios; exact, since its phases follow each other.
double r_overhead_by_ratios(double comp_ratio, double comm_ratio, References alone);

enum class Diagnosis {
  overlapped,            ///< nothing lost
  no_progress,           ///< all communication in wait
  computation_slowed,    ///< progress takes the processor from the computation
  contention,            ///< that, and nothing is overlapped
  communication_slowed,  ///< communication takes longer, but part of it is hidden
};

/// The thesis's table, section 4.1.3. What is within a tenth of 1 counts as 1.
Diagnosis diagnose(double comp_ratio, double comm_ratio, double overhead);
const char* name_of(Diagnosis diagnosis);

/// Percent, as the OSU micro-benchmarks print it (5.7).
double omb_overlap(double overall, double compute, double pure);
/// Percent, as Intel's MPI benchmarks print it (IMB-NBC 2018).
double imb_overlap(double pure, double compute, double overlapped);

/// CRESTA: what of a late start of one rank the collective hides, to the time it then takes. 0: nothing.
double delay_benefit(double undelayed, double delay, double delayed);
/// CRESTA: what of both alone is saved together, to the time together.
double overlap_availability(double coll, double comp, double together);

}  // namespace canele::perf::nbc
