! SPDX-License-Identifier: BSD-3-Clause
!
! The functions that MPI-3.0 removed, in fixed form, which old programs
! call without a declaration. Run by ctest at several numbers of ranks.
      program removed
      implicit none
      include 'mpif.h'
      integer ierror, rank, size, value, handler, old, class
      integer lengths(2), offsets(2), kinds(2)
      integer indexed, vector, struct
      integer sent(8), got(8)
      integer on_heap(:), low_address
      allocatable on_heap
      external failed
      integer failures
      common /counts/ failures

      call MPI_Init(ierror)
      call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
      call MPI_Comm_size(MPI_COMM_WORLD, size, ierror)
      do value = 1, 8
        sent(value) = value
        got(value) = 0
      end do

!     Extents and bounds.
      call MPI_TYPE_EXTENT(MPI_DOUBLE_PRECISION, value, ierror)
      call check(value .eq. 8 .and. ierror .eq. MPI_SUCCESS, 1)
      lengths(1) = 1
      lengths(2) = 2
      offsets(1) = 4
      offsets(2) = 20
      call MPI_TYPE_HINDEXED(2, lengths, offsets, MPI_INTEGER, indexed,
     &  ierror)
      call MPI_TYPE_LB(indexed, value, ierror)
      call check(value .eq. 4, 2)
      call MPI_TYPE_UB(indexed, value, ierror)
      call check(value .eq. 28, 3)
      call MPI_Type_commit(indexed, ierror)
      call MPI_Sendrecv(sent, 1, indexed, rank, 1, got, 1, indexed,
     &  rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
      call check(got(1) .eq. 0 .and. got(2) .eq. 2, 4)
      call check(got(6) .eq. 6 .and. got(7) .eq. 7, 5)
      call check(got(3) .eq. 0 .and. got(8) .eq. 0, 6)

      call MPI_TYPE_HVECTOR(2, 1, 12, MPI_INTEGER, vector, ierror)
      call MPI_TYPE_EXTENT(vector, value, ierror)
      call check(value .eq. 16, 7)
      kinds(1) = MPI_INTEGER
      kinds(2) = MPI_DOUBLE_PRECISION
      lengths(2) = 1
      offsets(1) = 0
      offsets(2) = 8
      call MPI_TYPE_STRUCT(2, lengths, offsets, kinds, struct, ierror)
      call MPI_TYPE_EXTENT(struct, value, ierror)
      call check(value .eq. 16, 8)
      call MPI_Type_free(indexed, ierror)
      call MPI_Type_free(vector, ierror)
      call MPI_Type_free(struct, ierror)

!     Error handlers.
      failures = 0
      call MPI_ERRHANDLER_CREATE(failed, handler, ierror)
      call MPI_ERRHANDLER_SET(MPI_COMM_WORLD, handler, ierror)
      call MPI_ERRHANDLER_GET(MPI_COMM_WORLD, old, ierror)
      call check(old .eq. handler, 9)
      call MPI_TYPE_EXTENT(MPI_DATATYPE_NULL, value, ierror)
      call check(ierror .ne. MPI_SUCCESS .and. failures .eq. 1, 10)
      call MPI_TYPE_STRUCT(-1, lengths, offsets, kinds, struct, ierror)
      call check(ierror .ne. MPI_SUCCESS .and. failures .eq. 2, 11)

!     An address that an INTEGER does not hold is an error.
      allocate(on_heap(1000000))
      low_address = -1
      call MPI_ADDRESS(on_heap(1), low_address, ierror)
      call MPI_Error_class(ierror, class, value)
      call check(class .eq. MPI_ERR_VALUE_TOO_LARGE, 12)
      call check(low_address .eq. -1 .and. failures .eq. 3, 13)
      call MPI_ADDRESS(MPI_BOTTOM, low_address, ierror)
      call check(ierror .eq. MPI_SUCCESS .and. low_address .eq. 0, 14)
      deallocate(on_heap)
      call MPI_Finalize(ierror)
      end

      subroutine failed(comm, code)
      integer comm, code
      integer failures
      common /counts/ failures
      if (comm .ne. code) failures = failures + 1
      end

      subroutine check(holds, number)
      implicit none
      include 'mpif.h'
      logical holds
      integer number, ierror
      if (.not. holds) then
        print *, 'removed.f: check', number, ' failed'
        call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
      end if
      end
