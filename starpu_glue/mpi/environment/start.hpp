// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Init and MPI_Finalize: start and end of the engine. Different threads may call them.
#pragma once

namespace canele::mpi {

/// Implement MPI_Init and MPI_Finalize. They return MPI codes.
int start(int asked_level);
int stop();

/// Returns false if the user forbids the worker (CANELE_WORKER=none), which wins over StarPU's wishes.
bool worker_wanted();

}  // namespace canele::mpi
