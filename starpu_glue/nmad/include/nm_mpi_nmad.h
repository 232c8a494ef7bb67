/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nm_mpi_nmad.h - from MPI objects (communicator and rank, datatype) to nm objects (session and gate, data descriptor).
 *
 * Used by StarPU for every request. Any thread; no call blocks or communicates. nm_mpi_nmad_dest opens the session of a
 * communicator at its first call, locally. Ranks that have not called it yet keep the messages that arrive.
 */
#ifndef CANELE_NM_MPI_NMAD_H
#define CANELE_NM_MPI_NMAD_H

#include <mpi.h>
#include <nm_public.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Gets session and gate for `rank` of a communicator (own rank allowed). The caller has nothing to release. */
CANELE_NMAD_API void nm_mpi_nmad_dest(nm_session_t *session, nm_gate_t *gate, MPI_Comm comm, int rank);

/* Describes `count` elements of `type` at `memory` and takes a reference on the type (none on predefined types). */
CANELE_NMAD_API void nm_mpi_nmad_data_get(struct nm_data_s *data, void *memory, MPI_Datatype type, int64_t count);
/* Drops the reference of nm_mpi_nmad_data_get. */
CANELE_NMAD_API void nm_mpi_nmad_data_release(MPI_Datatype type);

CANELE_NMAD_API nm_comm_t nm_mpi_comm(MPI_Comm comm);

#ifdef __cplusplus
}
#endif

#endif
