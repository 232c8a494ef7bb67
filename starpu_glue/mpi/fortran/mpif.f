! SPDX-License-Identifier: BSD-3-Clause
!
! mpif.h, as it is installed: constants, and the procedures that there are (others are link errors).
! Who: any Fortran program compiled by canele-mpifort, by include 'mpif.h' or by the module mpi.
! Surprise: this is read as fixed and as free form, so no line is continued, and none is longer than 72.
      integer MPI_SUCCESS, MPI_VERSION, MPI_SUBVERSION
      parameter (MPI_SUCCESS=0, MPI_VERSION=3, MPI_SUBVERSION=1)
      integer MPI_COMM_NULL, MPI_COMM_WORLD, MPI_COMM_SELF
      parameter (MPI_COMM_NULL=256, MPI_COMM_WORLD=257)
      parameter (MPI_COMM_SELF=258)
      integer MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED
      parameter (MPI_THREAD_SINGLE=0, MPI_THREAD_FUNNELED=1024)
      integer MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE
      parameter (MPI_THREAD_SERIALIZED=2048)
      parameter (MPI_THREAD_MULTIPLE=4096)
      integer MPI_MAX_PROCESSOR_NAME, MPI_MAX_ERROR_STRING
      parameter (MPI_MAX_PROCESSOR_NAME=256, MPI_MAX_ERROR_STRING=512)
      integer MPI_MAX_LIBRARY_VERSION_STRING
      parameter (MPI_MAX_LIBRARY_VERSION_STRING=8192)
      integer MPI_INTEGER_KIND, MPI_ADDRESS_KIND
      parameter (MPI_INTEGER_KIND=4, MPI_ADDRESS_KIND=8)
      integer MPI_OFFSET_KIND, MPI_COUNT_KIND
      parameter (MPI_OFFSET_KIND=8, MPI_COUNT_KIND=8)
      external MPI_INIT, MPI_INIT_THREAD, MPI_INITIALIZED
      external MPI_FINALIZE, MPI_FINALIZED, MPI_ABORT
      external MPI_COMM_RANK, MPI_COMM_SIZE, MPI_BARRIER
      external MPI_GET_VERSION, MPI_GET_LIBRARY_VERSION
      external MPI_GET_PROCESSOR_NAME, MPI_ERROR_STRING
      double precision MPI_WTIME, MPI_WTICK
      external MPI_WTIME, MPI_WTICK
