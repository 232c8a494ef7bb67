// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Init, MPI_Finalize and sessions: start and end of the engine. Different threads may call them.
#pragma once

namespace canele::mpi {

/// Implement MPI_Init and MPI_Finalize. They return MPI codes.
int start(int asked_level);
int stop();

/// Start the engine for its first user, and end it after its last one: MPI_Init and each session are users. Both wait
/// for all ranks then. They return MPI codes. `with_world`: MPI_COMM_WORLD and MPI_COMM_SELF end, too.
int hold_engine();
int drop_engine(bool with_world);

/// Returns false if the user forbids the worker (CANELE_WORKER=none), which wins over StarPU's wishes.
bool worker_wanted();

}  // namespace canele::mpi
