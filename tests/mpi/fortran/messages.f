! SPDX-License-Identifier: BSD-3-Clause
!
! MPI by mpif.h, in fixed form: messages, statuses, requests, types,
! collectives, texts. Run by ctest at several numbers of ranks.
      program messages
      implicit none
      include 'mpif.h'
      integer size, rank, ierror, left, right, i, length, flag
      integer status(MPI_STATUS_SIZE), statuses(MPI_STATUS_SIZE, 4)
      integer requests(4), sent(8), got(8), comm, vector, index, count
      integer indexes(4), done, color
      integer*8 lower, extent
      double precision sum, part, started
      character*(MPI_MAX_OBJECT_NAME) name
      logical is_there

      call MPI_Init(ierror)
      started = MPI_Wtime()
      call MPI_Comm_size(MPI_COMM_WORLD, size, ierror)
      call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
      right = mod(rank + 1, size)
      left = mod(rank + size - 1, size)
      do i = 1, 8
        sent(i) = 100 * rank + i
      end do

!     A ring, and what its status says.
      call MPI_Sendrecv(sent, 8, MPI_INTEGER, right, 7, got, 8,
     &  MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
     &  status, ierror)
      call check(status(MPI_SOURCE) .eq. left, 1)
      call check(status(MPI_TAG) .eq. 7, 2)
      call MPI_Get_count(status, MPI_INTEGER, count, ierror)
      call check(count .eq. 8 .and. got(8) .eq. 100 * left + 8, 3)

!     Every second element; requests; indexes that count from 1.
      call MPI_Type_vector(4, 1, 2, MPI_INTEGER, vector, ierror)
      call MPI_Type_commit(vector, ierror)
      call MPI_Type_get_extent(vector, lower, extent, ierror)
      call check(lower .eq. 0 .and. extent .eq. 28, 4)
      got = 0
      call MPI_Irecv(got, 1, vector, left, 8, MPI_COMM_WORLD,
     &  requests(1), ierror)
      requests(2) = MPI_REQUEST_NULL
      call MPI_Isend(sent, 4, MPI_INTEGER, right, 8, MPI_COMM_WORLD,
     &  requests(3), ierror)
      call MPI_Waitany(1, requests, index, MPI_STATUS_IGNORE, ierror)
      call check(index .eq. 1, 5)
      call check(requests(1) .eq. MPI_REQUEST_NULL, 6)
      call MPI_Waitall(3, requests, MPI_STATUSES_IGNORE, ierror)
      call check(got(1) .eq. 100 * left + 1, 7)
      call check(got(2) .eq. 0 .and. got(7) .eq. 100 * left + 4, 8)
      call MPI_Irecv(got, 8, MPI_INTEGER, left, 9, MPI_COMM_WORLD,
     &  requests(2), ierror)
      call MPI_Send(sent, 8, MPI_INTEGER, right, 9, MPI_COMM_WORLD,
     &  ierror)
      call MPI_Waitsome(3, requests, done, indexes, statuses, ierror)
      call check(done .eq. 1 .and. indexes(1) .eq. 2, 9)
      call check(statuses(MPI_TAG, 1) .eq. 9, 10)
      call MPI_Waitany(3, requests, index, status, ierror)
      call check(index .eq. MPI_UNDEFINED, 11)
      call MPI_Type_free(vector, ierror)
      call check(vector .eq. MPI_DATATYPE_NULL, 12)

!     Collectives, also in place.
      part = dble(rank + 1)
      call MPI_Allreduce(part, sum, 1, MPI_DOUBLE_PRECISION, MPI_SUM,
     &  MPI_COMM_WORLD, ierror)
      call check(sum .eq. dble(size * (size + 1)) / 2, 13)
      sum = part
      call MPI_Allreduce(MPI_IN_PLACE, sum, 1, MPI_DOUBLE_PRECISION,
     &  MPI_MAX, MPI_COMM_WORLD, ierror)
      call check(sum .eq. dble(size), 14)

!     A communicator, its name, and an error that is returned.
      color = mod(rank, 2)
      call MPI_Comm_split(MPI_COMM_WORLD, color, -rank, comm, ierror)
      call MPI_Comm_set_name(comm, 'half of the ranks   ', ierror)
      call MPI_Comm_get_name(comm, name, length, ierror)
      call check(length .eq. 17, 15)
      call check(name .eq. 'half of the ranks', 16)
      call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN, ierror)
      call MPI_Send(sent, 1, MPI_INTEGER, size, 1, comm, ierror)
      call check(ierror .eq. MPI_ERR_RANK, 17)
      call MPI_Comm_free(comm, ierror)
      call check(comm .eq. MPI_COMM_NULL, 18)

      call MPI_Iprobe(left, 77, MPI_COMM_WORLD, is_there, status,
     &  ierror)
      call check(.not. is_there, 19)
      call check(MPI_Wtime() .ge. started, 20)
      if (size .gt. 1) call between(rank, size)
      flag = 0
      call MPI_Finalize(ierror)
      end

!     An intercommunicator of the first rank and the others: arrays have
!     an element for each rank of the other group.
      subroutine between(rank, size)
      implicit none
      include 'mpif.h'
      integer rank, size, own, inter, leader, others, i, ierror
      integer counts(16), places(16), types(16), sent(16), got(16)
      logical is_inter
      call MPI_Comm_split(MPI_COMM_WORLD, min(rank, 1), rank, own,
     &  ierror)
      leader = 1 - min(rank, 1)
      call MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, leader, 5,
     &  inter, ierror)
      call MPI_Comm_test_inter(inter, is_inter, ierror)
      call MPI_Comm_remote_size(inter, others, ierror)
      call check(is_inter, 21)
      do i = 1, others
        counts(i) = 1
        places(i) = 4 * (i - 1)
        types(i) = MPI_INTEGER
        sent(i) = 10 * rank + i
      end do
      got = -1
      call MPI_Alltoallw(sent, counts, places, types, got, counts,
     &  places, types, inter, ierror)
      if (rank .eq. 0) then
        call check(others .eq. size - 1, 22)
        do i = 1, others
          call check(got(i) .eq. 10 * i + 1, 23)
        end do
      else
        call check(others .eq. 1 .and. got(1) .eq. rank, 24)
      end if
      call MPI_Comm_free(own, ierror)
      call MPI_Comm_free(inter, ierror)
      end

      subroutine check(holds, number)
      implicit none
      include 'mpif.h'
      logical holds
      integer number, ierror
      if (holds) return
      print *, 'check ', number, ' failed'
      call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
      end
