/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi-ext.h - whether MPI calls take buffers in GPU memory.
 *
 * Messages and collectives take the memory of CUDA devices, with any datatype; windows do not. The library opens the
 * driver at run time, so the functions tell what holds, not the macros. StarPU and other programs include this header,
 * and copy through host memory if the answer is 0. The header and its names are those of Open MPI and MPICH, because
 * programs look for them. Callable from any thread, also before MPI_Init. */
#ifndef CANELE_MPI_EXT_H
#define CANELE_MPI_EXT_H

#include <mpi.h>

#define MPIX_CUDA_AWARE_SUPPORT 1
#define MPIX_HIP_AWARE_SUPPORT 0
#define MPIX_ROCM_AWARE_SUPPORT 0

#ifdef __cplusplus
extern "C" {
#endif

/* Returns 1 if buffers may lie in the memory of a CUDA device: MPI runs, the process has the driver's library or
 * CANELE_GPU=cuda is set, and there is a device. 0 as well under StarPU with its cooperative sends, which read the
 * wrong memory then: a line in the log tells (STARPU_MPI_COOP_SENDS=0). Cannot fail; does not block. */
CANELE_MPI_API int MPIX_Query_cuda_support(void);
/* Return 1 if buffers may lie in the memory of an AMD device; always 0 here. Cannot fail; do not block. */
CANELE_MPI_API int MPIX_Query_hip_support(void);
CANELE_MPI_API int MPIX_Query_rocm_support(void);

#ifdef __cplusplus
}
#endif

#endif
