/* SPDX-License-Identifier: BSD-3-Clause
 *
 * canele_mpi.h - from MPI objects to those of the native API, in a program that uses both.
 *
 * A runtime that gets a communicator from its program, and sends by the native API, finds here the engine of MPI, a
 * session of its own, the ranks, and the data of a datatype:
 *
 *     canele_mpi_session(comm, &session);
 *     canele_mpi_job_rank(comm, neighbour, &rank);
 *     canele_mpi_data_get(&elements, buffer, count, datatype, &data);
 *     canele_post_send(session, rank, tag, &data, &options, NULL);
 *
 * Any thread, between MPI_Init and MPI_Finalize. No function blocks or communicates. All return MPI codes, and apply
 * the error handler of the communicator, or of MPI_COMM_WORLD, like MPI functions. */
#ifndef CANELE_MPI_BRIDGE_H
#define CANELE_MPI_BRIDGE_H

#include <canele/canele.h>
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Writes the engine that MPI uses. It belongs to MPI: the program does not finalize it. */
CANELE_MPI_API int canele_mpi_engine(canele_engine_t **engine);

/** Writes the session of the communicator for messages of the native API; MPI's own messages are in others. It has the
 * same label on all ranks of the communicator, and is opened at the first call. It belongs to the communicator, and is
 * closed some time after MPI_Comm_free; so the program frees the communicator last. */
CANELE_MPI_API int canele_mpi_session(MPI_Comm comm, canele_session_t **session);

/** Writes the rank in the job, as the native API counts, of `rank` in the communicator. MPI_ERR_RANK. */
CANELE_MPI_API int canele_mpi_job_rank(MPI_Comm comm, int rank, int *job_rank);

/** Writes the rank in the communicator of a rank of the job; MPI_UNDEFINED: it is not a member. MPI_ERR_RANK: the job
 * has no such rank. */
CANELE_MPI_API int canele_mpi_comm_rank(MPI_Comm comm, int job_rank, int *rank);

/** Elements of a datatype, as data of the native API. Memory of the caller, which does not move while in use. */
typedef struct canele_mpi_elements {
  long long opaque[12];
} canele_mpi_elements_t;

/** Describes `count` elements of `type` at `buffer`, for sends, receives, puts and gets. *data refers to *elements, and
 * both live until the operations with it have ended. Holds the datatype, also if the program frees it, until
 * canele_mpi_data_release. MPI_ERR_TYPE, MPI_ERR_COUNT. */
CANELE_MPI_API int canele_mpi_data_get(canele_mpi_elements_t *elements, const void *buffer, int count,
                                       MPI_Datatype type, canele_data_t *data);
CANELE_MPI_API int canele_mpi_data_release(canele_mpi_elements_t *elements);

#ifdef __cplusplus
}
#endif

#endif
