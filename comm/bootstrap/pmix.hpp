// SPDX-License-Identifier: BSD-3-Clause
//
// The PMIx client: joins a job of canele-run, of mpirun (Open MPI) or of srun --mpi=pmix.
//
// Who: join_job() only. Threads: see bootstrap.hpp.
// Surprise: always there; built without libpmix it fails with a text that says so.
#pragma once

#include "comm/bootstrap/process_bootstrap.hpp"

namespace canele::comm {

/// Once per process. nullptr and *why if the launcher's server cannot be reached within timeout_ns.
std::unique_ptr<ProcessBootstrap> join_pmix(Platform& platform, std::uint64_t timeout_ns, std::string* why);

}  // namespace canele::comm
