/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi-ext.h - whether MPI calls take buffers in GPU memory. They do not.
 *
 * StarPU and other programs include this header, and then copy through host memory instead of handing such buffers to
 * MPI. The header has the name that Open MPI gave it, because programs look for that name. Callable from any thread,
 * also before MPI_Init. */
#ifndef CANELE_MPI_EXT_H
#define CANELE_MPI_EXT_H

#include <mpi.h>

#define MPIX_CUDA_AWARE_SUPPORT 0
#define MPIX_HIP_AWARE_SUPPORT 0

#ifdef __cplusplus
extern "C" {
#endif

/* Return 1 if buffers may lie in the memory of a CUDA or AMD device; always 0 here. Cannot fail; do not block. */
CANELE_MPI_API int MPIX_Query_cuda_support(void);
CANELE_MPI_API int MPIX_Query_hip_support(void);

#ifdef __cplusplus
}
#endif

#endif
