/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nm_launcher_interface.h - from a session back to its communicator.
 *
 * For StarPU 1.4 and later; any thread. There is no launcher behind it: MPI_Init is the only way to start.
 */
#ifndef CANELE_NM_LAUNCHER_INTERFACE_H
#define CANELE_NM_LAUNCHER_INTERFACE_H

#include <nm_public.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Never returns NULL for a session that nm_mpi_nmad_dest returned. */
CANELE_NMAD_API nm_comm_t nm_comm_get_by_session(nm_session_t session);

#ifdef __cplusplus
}
#endif

#endif
