! SPDX-License-Identifier: BSD-3-Clause
!
! MPI by the module mpi: data of several types and ranks through one interface, groups, infos, an operator in Fortran.
! Run by ctest at several numbers of ranks.
module operators
contains
  subroutine largest(in, inout, length, datatype)
    integer :: length, datatype
    integer :: in(length), inout(length)
    inout = max(in, inout)
  end subroutine largest
end module operators

program with_module
  use mpi
  use operators
  implicit none
  integer :: size, rank, ierror, i, op, group, part, n, length, info, members
  integer :: ranges(3, 1), position
  integer(kind=MPI_ADDRESS_KIND) :: first, second
  real(kind=8), allocatable :: matrix(:, :), all(:, :)
  complex :: value
  integer :: numbers(3)
  logical :: is_there
  character(len=20) :: text
  character(len=64) :: packed

  call MPI_Init(ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)

  allocate (matrix(3, 2), all(6, size))
  matrix = rank
  call MPI_Allgather(matrix, 6, MPI_DOUBLE_PRECISION, all, 6, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, ierror)
  do i = 1, size
    call check(all(6, i) == i - 1, 1)
  end do
  value = (1.0, 2.0)
  call MPI_Bcast(value, 1, MPI_COMPLEX, 0, MPI_COMM_WORLD, ierror)
  call check(value == (1.0, 2.0), 2)

  call MPI_Op_create(largest, .true., op, ierror)
  numbers = [rank, -rank, 5]
  call MPI_Allreduce(MPI_IN_PLACE, numbers, 3, MPI_INTEGER, op, MPI_COMM_WORLD, ierror)
  call check(all_equal(numbers, [size - 1, 0, 5]), 3)
  call MPI_Op_free(op, ierror)

  call MPI_Comm_group(MPI_COMM_WORLD, group, ierror)
  ranges(:, 1) = [0, size - 1, 2]
  call MPI_Group_range_incl(group, 1, ranges, part, ierror)
  call MPI_Group_size(part, members, ierror)
  call check(members == (size + 1) / 2, 4)
  call MPI_Group_free(part, ierror)
  call MPI_Group_free(group, ierror)

  call MPI_Info_create(info, ierror)
  call MPI_Info_set(info, '  key ', ' some value ', ierror)
  call MPI_Info_get_valuelen(info, 'key', length, is_there, ierror)
  call check(is_there .and. length == 10, 5)
  call MPI_Info_get(info, 'key', 20, text, is_there, ierror)
  call check(is_there .and. text == 'some value', 6)
  call MPI_Info_get_nkeys(info, n, ierror)
  call check(n == 1, 7)
  call MPI_Info_free(info, ierror)

  call MPI_Get_address(numbers(1), first, ierror)
  call MPI_Get_address(numbers(3), second, ierror)
  call check(MPI_Aint_diff(second, first) == 8, 8)
  position = 0
  call MPI_Pack(numbers, 3, MPI_INTEGER, packed, 64, position, MPI_COMM_WORLD, ierror)
  call check(position == 12, 9)
  call MPI_Finalize(ierror)

contains
  logical function all_equal(a, b)
    integer, intent(in) :: a(:), b(:)
    all_equal = .true.
    if (any(a /= b)) all_equal = .false.
  end function all_equal

  subroutine check(holds, number)
    logical, intent(in) :: holds
    integer, intent(in) :: number
    if (holds) return
    print *, 'check ', number, ' failed'
    call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
  end subroutine check
end program with_module
