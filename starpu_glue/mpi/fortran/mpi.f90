! SPDX-License-Identifier: BSD-3-Clause
!
! The module mpi, for `use mpi`. Who: the build, which compiles it where gfortran is; the result is installed.
! Surprise: a compiled module fits one major version of gfortran; with another, mpif.h still serves. (mpif.f is
! installed under that name.)
module mpi
  implicit none
  include 'mpif.f'
end module mpi
