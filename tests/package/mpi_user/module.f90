! SPDX-License-Identifier: BSD-3-Clause
! Says who it is, with the module mpi; and looks at the texts that come back. See package_test.py.
program with_module
  use mpi
  implicit none
  integer :: rank, ranks, error, length, provided
  logical :: running
  character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: version
  call MPI_INIT_THREAD(MPI_THREAD_MULTIPLE, provided, error)
  if (error /= MPI_SUCCESS .or. provided /= MPI_THREAD_MULTIPLE) stop 2
  call MPI_INITIALIZED(running, error)
  if (.not. running) stop 3
  call MPI_GET_LIBRARY_VERSION(version, length, error)
  if (version(1:3) /= 'Can' .or. len_trim(version) /= length) stop 4
  if (MPI_WTIME() <= 0) stop 5
  call MPI_COMM_RANK(MPI_COMM_WORLD, rank, error)
  call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, error)
  write (*, '(A, I0, A, I0)') 'rank ', rank, ' of ', ranks
  call MPI_FINALIZE(error)
end program with_module
