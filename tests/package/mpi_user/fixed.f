! SPDX-License-Identifier: BSD-3-Clause
! Says who it is, in fixed form with mpif.h. See package_test.py.
      program fixed
      include 'mpif.h'
      integer rank, size, error
      call MPI_INIT(error)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, error)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, size, error)
      call MPI_BARRIER(MPI_COMM_WORLD, error)
      write (*, '(A, I0, A, I0)') 'rank ', rank, ' of ', size
      call MPI_FINALIZE(error)
      end
