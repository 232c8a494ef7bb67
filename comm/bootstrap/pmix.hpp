// SPDX-License-Identifier: BSD-3-Clause
//
// The PMIx client: joins a job of canele-run, of mpirun (Open MPI) or of srun --mpi=pmix.
//
// Used by join_job() only. Threads: see bootstrap.hpp. A build without libpmix has this function, too; it fails with a
// text that says so.
#pragma once

#include "comm/bootstrap/process_bootstrap.hpp"

namespace canele::comm {

/// Joins the job, once per process. Returns nullptr and sets *why if the launcher's server cannot be reached within
/// timeout_ns.
std::unique_ptr<ProcessBootstrap> join_pmix(Platform& platform, std::uint64_t timeout_ns, std::string* why);

}  // namespace canele::comm
