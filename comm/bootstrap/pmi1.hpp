// SPDX-License-Identifier: BSD-3-Clause
//
// The PMI-1 client: joins a job of mpiexec.hydra, or of canele-run where it serves PMI-1.
//
// Used by join_job() only; tests call make_pmi1() with a socket of their own. Threads: see bootstrap.hpp. It has no
// thread of its own. The engine, or Attended, watches descriptor() and calls progress(); start and end wait with
// poll().
#pragma once

#include "comm/bootstrap/process_bootstrap.hpp"

namespace canele::comm {

/// What the launcher passes in environment variables.
struct Pmi1Place {
  int descriptor = -1;
  int rank = -1, size = 0;
  int local_rank = 0, local_size = 1;
};

/// Reads the place from PMI_FD, PMI_RANK, PMI_SIZE, MPI_LOCALRANKID and MPI_LOCALNRANKS, and joins the job. Returns
/// nullptr and sets *why if they are invalid, or if the launcher does not answer in time. Call once per process: the
/// library owns the descriptor from then on.
std::unique_ptr<ProcessBootstrap> join_pmi1(Platform& platform, std::uint64_t timeout_ns, std::string* why);

/// Joins the job with a known place. Owns the descriptor from here on.
std::unique_ptr<ProcessBootstrap> make_pmi1(Platform& platform, const Pmi1Place& place, std::uint64_t timeout_ns,
                                            std::string* why);

}  // namespace canele::comm
