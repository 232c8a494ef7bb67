/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What programs ask an MPI beyond the standard: does it take buffers in a GPU's memory? It does not.
 *
 * Who: StarPU and others that would otherwise hand such buffers to MPI; they then copy through the host's memory.
 * Threads: any, also before MPI_Init. Surprise: the name is Open MPI's, and is what everybody looks for.
 */
#ifndef CANELE_MPI_EXT_H
#define CANELE_MPI_EXT_H

#include <mpi.h>

#define MPIX_CUDA_AWARE_SUPPORT 0
#define MPIX_HIP_AWARE_SUPPORT 0

#ifdef __cplusplus
extern "C" {
#endif

/** 1 if buffers may lie in the memory of a CUDA device, or of one of AMD's; 0 always. Cannot fail; does not block. */
CANELE_MPI_API int MPIX_Query_cuda_support(void);
CANELE_MPI_API int MPIX_Query_hip_support(void);

#ifdef __cplusplus
}
#endif

#endif
