// SPDX-License-Identifier: BSD-3-Clause
//
// The PMI-1 client: joins a job of mpiexec.hydra, or of canele-run where it serves PMI-1.
//
// Who: join_job() only; tests take make_pmi1() with a socket of their own. Threads: see bootstrap.hpp.
// Surprise: it has no thread. The engine watches descriptor() and calls progress(); start and end wait with poll().
#pragma once

#include "comm/bootstrap/process_bootstrap.hpp"

namespace canele::comm {

/// What the launcher tells by variables.
struct Pmi1Place {
  int descriptor = -1;
  int rank = -1, size = 0;
  int local_rank = 0, local_size = 1;
};

/// Takes the place from PMI_FD, PMI_RANK, PMI_SIZE, MPI_LOCALRANKID and MPI_LOCALNRANKS. nullptr and *why if they make
/// no sense, or the launcher does not answer in time. Once per process: the descriptor is ours from then on.
std::unique_ptr<ProcessBootstrap> join_pmi1(Platform& platform, std::uint64_t timeout_ns, std::string* why);

/// The same with a known place; owns the descriptor from here on.
std::unique_ptr<ProcessBootstrap> make_pmi1(Platform& platform, const Pmi1Place& place, std::uint64_t timeout_ns,
                                            std::string* why);

}  // namespace canele::comm
