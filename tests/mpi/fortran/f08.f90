! SPDX-License-Identifier: BSD-3-Clause
!
! MPI by the module mpi_f08: types of handles, statuses with fields, no error codes, forms for large counts, data of any
! type and rank, functions of the program. Run by ctest at several numbers of ranks.
module f08_procedures
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: deletes = 0, handled = 0, frees = 0
contains
  subroutine largest_and_one(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: in(:), inout(:)
    call c_f_pointer(invec, in, [len])
    call c_f_pointer(inoutvec, inout, [len])
    if (datatype == MPI_INTEGER) inout = max(in, inout) + 1
  end subroutine largest_and_one

  subroutine delete_counted(comm, comm_keyval, attribute_val, extra_state, ierror)
    type(MPI_Comm) :: comm
    integer :: comm_keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: attribute_val, extra_state
    if (comm /= MPI_COMM_NULL .and. comm_keyval /= MPI_KEYVAL_INVALID) deletes = deletes + int(attribute_val)
    ierror = MPI_SUCCESS
    if (extra_state /= 1) ierror = MPI_ERR_OTHER
  end subroutine delete_counted

  subroutine on_error(comm, error_code)
    type(MPI_Comm) :: comm
    integer :: error_code
    if (comm /= MPI_COMM_NULL .and. error_code /= MPI_SUCCESS) handled = handled + 1
  end subroutine on_error

  subroutine query(extra_state, status, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    type(MPI_Status) :: status
    integer :: ierror
    status%MPI_SOURCE = int(extra_state)
    status%MPI_TAG = 3
    call MPI_Status_set_cancelled(status, .false., ierror)
  end subroutine query

  subroutine on_free(extra_state, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    frees = frees + int(extra_state)
    ierror = MPI_SUCCESS
  end subroutine on_free

  subroutine on_cancel(extra_state, complete, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
    ierror = merge(MPI_SUCCESS, MPI_ERR_OTHER, complete .or. extra_state > 0)
  end subroutine on_cancel
end module f08_procedures

program f08
  use mpi_f08
  use f08_procedures
  implicit none
  integer :: rank, size, left, right, ierror

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(comm=MPI_COMM_WORLD, size=size, ierror=ierror)
  left = modulo(rank - 1, size)
  right = modulo(rank + 1, size)
  call handles
  call messages
  call large_counts
  call sections
  call collectives
  call persistent_collectives
  call partitioned
  call functions
  call memory
  call types
  call profiling
  call MPI_Finalize(ierror)

contains
  subroutine handles
    type(MPI_Comm) :: comm, comms(2)
    type(MPI_Group) :: group, all
    character(len=MPI_MAX_OBJECT_NAME) :: name
    integer :: length, result
    call check(MPI_COMM_WORLD /= MPI_COMM_SELF .and. MPI_COMM_WORLD == MPI_COMM_WORLD, 1)
    comms = [MPI_COMM_NULL, MPI_COMM_SELF]
    call check(count(comms == MPI_COMM_NULL) == 1, 2)
    call MPI_Comm_dup(MPI_COMM_WORLD, comm)
    comms(1)%MPI_VAL = comm%MPI_VAL
    call check(comms(1) == comm, 3)
    call MPI_Comm_set_name(comm, '  a name  ')
    call MPI_Comm_get_name(comm, name, length)
    call check(name == 'a name' .and. length == 6, 4)
    call MPI_Comm_compare(comm, MPI_COMM_WORLD, result)
    call check(result == MPI_CONGRUENT, 5)
    call MPI_Comm_group(comm, all)
    call MPI_Group_excl(all, 1, [0], group)
    if (size == 1) call check(group == MPI_GROUP_EMPTY, 6)
    if (group /= MPI_GROUP_EMPTY) call MPI_Group_free(group)
    call MPI_Group_free(all)
    call MPI_Comm_free(comm, ierror)
    call check(comm == MPI_COMM_NULL .and. ierror == MPI_SUCCESS, 7)
    call check(MPI_VERSION >= 3 .and. MPI_Wtick() > 0 .and. MPI_Wtime() >= 0, 8)
  end subroutine handles

  subroutine messages
    type(MPI_Status) :: status, statuses(2)
    type(MPI_Request) :: requests(2)
    type(MPI_Message) :: message
    integer, asynchronous :: sent(4), got(4)
    integer :: old(MPI_STATUS_SIZE), length, index
    logical :: flag
    sent = rank
    call MPI_Sendrecv(sent, 4, MPI_INTEGER, right, 7, got, 4, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, &
                      MPI_COMM_WORLD, status)
    call check(status%MPI_SOURCE == left .and. status%MPI_TAG == 7 .and. got(4) == left, 11)
    call MPI_Get_count(status, MPI_INTEGER, length)
    call check(length == 4, 12)
    call MPI_Status_f082f(status, old)
    call check(old(MPI_SOURCE) == left .and. old(MPI_TAG) == 7, 13)
    old(MPI_TAG) = 8
    call MPI_Status_f2f08(old, status)
    call check(status%MPI_TAG == 8 .and. status%MPI_SOURCE == left, 14)
    call MPI_Irecv(got, 4, MPI_INTEGER, left, 9, MPI_COMM_WORLD, requests(2))
    call MPI_Isend(sent, 3, MPI_INTEGER, right, 9, MPI_COMM_WORLD, requests(1))
    call MPI_Waitall(2, requests, statuses)
    call check(all(requests == MPI_REQUEST_NULL) .and. statuses(2)%MPI_TAG == 9, 15)
    call MPI_Isend(sent, 1, MPI_INTEGER, right, 10, MPI_COMM_WORLD, requests(2))
    call MPI_Mprobe(left, 10, MPI_COMM_WORLD, message, MPI_STATUS_IGNORE)
    call check(message /= MPI_MESSAGE_NULL, 16)
    call MPI_Mrecv(got, 4, MPI_INTEGER, message, status)
    call MPI_Waitany(2, requests, index, MPI_STATUS_IGNORE)
    call check(index == 2, 17)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call MPI_Send_init(sent, 1, MPI_INTEGER, right, 11, MPI_COMM_WORLD, requests(1))
    call MPI_Start(requests(1))
    call MPI_Recv(got, 1, MPI_INTEGER, left, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    flag = .false.
    do while (.not. flag)
      call MPI_Testall(2, requests, flag, statuses)
    end do
    call MPI_Request_free(requests(1))
    call MPI_Iprobe(left, 77, MPI_COMM_WORLD, flag, status)
    call check(.not. flag, 18)
  end subroutine messages

  subroutine large_counts
    type(MPI_Status) :: status
    type(MPI_Request) :: request
    type(MPI_Datatype) :: datatype
    type(MPI_Message) :: message
    integer(kind=MPI_COUNT_KIND) :: bytes
    integer :: small
    real(kind=8), asynchronous :: sent(2, 3), got(2, 3)
    sent = rank
    call MPI_Isend(sent, 6, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, request)
    call MPI_Mprobe(left, 1, MPI_COMM_WORLD, message, status)
    call MPI_Mrecv(got, 6_MPI_COUNT_KIND, MPI_DOUBLE_PRECISION, message, status)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(got == left), 21)
    call MPI_Type_contiguous(3000000000_MPI_COUNT_KIND, MPI_INTEGER, datatype)
    call MPI_Type_size(datatype, bytes)
    call check(bytes == 12000000000_MPI_COUNT_KIND, 22)
    call MPI_Type_size(datatype, small)
    call check(small == MPI_UNDEFINED, 23)
    call contents(datatype)
    call MPI_Type_free(datatype)
  end subroutine large_counts

  subroutine contents(datatype)
    type(MPI_Datatype), intent(in) :: datatype
    type(MPI_Datatype) :: types(1)
    integer(kind=MPI_COUNT_KIND) :: integers, addresses, counts, datatypes, large(1)
    integer(kind=MPI_ADDRESS_KIND) :: place(1)
    integer :: combiner, numbers(1)
    call MPI_Type_get_envelope(datatype, integers, addresses, counts, datatypes, combiner)
    call check(combiner == MPI_COMBINER_CONTIGUOUS .and. counts == 1 .and. datatypes == 1, 25)
    call MPI_Type_get_contents(datatype, integers, addresses, counts, datatypes, numbers, place, large, types)
    call check(large(1) == 3000000000_MPI_COUNT_KIND .and. types(1) == MPI_INTEGER, 26)
  end subroutine contents

  ! The compiler copies a section with gaps for a blocking call, and back.
  subroutine sections
    integer :: sent(4, 4), got(4, 4)
    character(len=5) :: text
    sent = rank
    got = -1
    call MPI_Sendrecv(sent(1:4:2, 1), 2, MPI_INTEGER, right, 2, got(2, :), 2, MPI_INTEGER, left, 2, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE)
    call check(all(got(2, 1:2) == left) .and. all(got(2, 3:) == -1) .and. all(got(1, :) == -1), 31)
    text = merge('hello', 'other', rank == 0)
    call MPI_Bcast(text, 5, MPI_CHARACTER, 0, MPI_COMM_WORLD)
    call check(text == 'hello', 32)
    call check(.not. MPI_SUBARRAYS_SUPPORTED .and. MPI_ASYNC_PROTECTS_NONBLOCKING, 33)
  end subroutine sections

  subroutine collectives
    type(MPI_Request) :: request
    type(MPI_Datatype), allocatable :: datatypes(:)
    integer, allocatable, asynchronous :: parts(:), counts(:), places(:), bytes(:)
    integer :: total, i
    allocate (parts(size), counts(size), places(size), bytes(size), datatypes(size))
    parts = -1
    counts = 1
    places = [(size - i, i=1, size)]
    call MPI_Allgatherv(rank, 1, MPI_INTEGER, parts, counts, places, MPI_INTEGER, MPI_COMM_WORLD)
    call check(all(parts == places), 41)
    call MPI_Allreduce(MPI_IN_PLACE, parts, size, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    call check(all(parts == size * places), 42)
    call MPI_Iallreduce(rank, total, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(total == size - 1, 43)
    datatypes = MPI_INTEGER
    bytes = [(4 * i - 4, i=1, size)]
    places = rank
    call MPI_Ialltoallw(places, counts, bytes, datatypes, parts, counts, bytes, datatypes, MPI_COMM_WORLD, request)
    datatypes = MPI_DATATYPE_NULL
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(parts == [(i, i=0, size - 1)]), 44)
  end subroutine collectives

  ! Also in the forms for large counts.
  subroutine persistent_collectives
    type(MPI_Request) :: requests(3)
    integer(kind=MPI_COUNT_KIND), allocatable :: counts(:)
    integer(kind=MPI_ADDRESS_KIND), allocatable :: places(:)
    integer, allocatable, asynchronous :: parts(:)
    integer, asynchronous :: own, total, told(2)
    integer :: i, turn
    allocate (parts(size), counts(size), places(size))
    counts = 1
    places = [(size - i, i=1, size)]
    call MPI_Allgatherv_init(own, 1_MPI_COUNT_KIND, MPI_INTEGER, parts, counts, places, MPI_INTEGER, MPI_COMM_WORLD, &
                             MPI_INFO_NULL, requests(1))
    call MPI_Allreduce_init(own, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, requests(2))
    call MPI_Bcast_init(told, 2_MPI_COUNT_KIND, MPI_INTEGER, 0, MPI_COMM_WORLD, MPI_INFO_NULL, requests(3))
    counts = -1
    places = 0
    do turn = 1, 3
      own = rank + turn
      told = merge(turn, -1, rank == 0)
      call MPI_Startall(3, requests)
      call MPI_Waitall(3, requests, MPI_STATUSES_IGNORE)
      call check(all(parts == [(size - i + turn, i=1, size)]), 45)
      call check(total == size * (size - 1) / 2 + size * turn .and. all(told == turn), 46)
    end do
    do i = 1, 3
      call MPI_Request_free(requests(i))
    end do
    call MPI_Allreduce(own, total, 1_MPI_COUNT_KIND, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD)
    call check(total == size + 2, 47)
  end subroutine persistent_collectives

  subroutine partitioned
    integer, parameter :: parts = 6
    integer(kind=MPI_COUNT_KIND), parameter :: length = 500
    integer, asynchronous :: out(length, parts), in(length * 2, parts / 2)
    type(MPI_Request) :: requests(2)
    integer :: turn
    logical :: flag
    call MPI_Psend_init(out, parts, length, MPI_INTEGER, right, 5, MPI_COMM_WORLD, MPI_INFO_NULL, requests(1))
    call MPI_Precv_init(in, parts / 2, 2 * length, MPI_INTEGER, left, 5, MPI_COMM_WORLD, MPI_INFO_NULL, requests(2))
    do turn = 1, 2
      out = rank + turn
      in = -1
      call MPI_Startall(2, requests)
      call MPI_Pready(0, requests(1))
      call MPI_Pready_list(2, [5, 4], requests(1))
      call MPI_Pready_range(1, 3, requests(1))
      flag = .false.
      do while (.not. flag)
        call MPI_Parrived(requests(2), 1, flag)
      end do
      call check(all(in(:, 2) == left + turn), 48)
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
      call check(all(in == left + turn), 49)
    end do
    call MPI_Request_free(requests(1))
    call MPI_Request_free(requests(2))
  end subroutine partitioned

  subroutine functions
    type(MPI_Op) :: op
    type(MPI_Comm) :: comm
    type(MPI_Errhandler) :: handler
    type(MPI_Request) :: request
    type(MPI_Status) :: status
    integer :: keyval, numbers(2)
    integer(kind=MPI_ADDRESS_KIND) :: value
    logical :: flag
    call MPI_Op_create(largest_and_one, .true., op)
    numbers = [rank, -rank]
    call MPI_Allreduce(MPI_IN_PLACE, numbers, 2, MPI_INTEGER, op, MPI_COMM_WORLD)
    call check(numbers(1) >= size - 1 .and. (size == 1 .or. numbers(2) > 0), 51)
    call MPI_Op_free(op)
    call check(op == MPI_OP_NULL, 52)
    call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, delete_counted, keyval, 1_MPI_ADDRESS_KIND)
    call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, 30_MPI_ADDRESS_KIND)
    call MPI_Comm_dup(MPI_COMM_WORLD, comm)
    call MPI_Comm_get_attr(comm, keyval, value, flag)
    call check(flag .and. value == 30, 53)
    call MPI_Comm_create_errhandler(on_error, handler)
    call MPI_Comm_set_errhandler(comm, handler)
    call MPI_Errhandler_free(handler)
    call MPI_Send(numbers, 1, MPI_INTEGER, size, 1, comm, ierror)
    call check(handled == 1 .and. ierror /= MPI_SUCCESS, 54)
    call MPI_Comm_free(comm)
    call check(deletes == 30, 55)
    call MPI_Grequest_start(query, on_free, on_cancel, 12_MPI_ADDRESS_KIND, request)
    call MPI_Grequest_complete(request)
    call MPI_Wait(request, status)
    call check(status%MPI_SOURCE == 12 .and. frees == 12, 56)
  end subroutine functions

  subroutine memory
    use, intrinsic :: iso_c_binding
    type(c_ptr) :: place
    type(MPI_Win) :: window
    integer, pointer :: numbers(:)
    integer, asynchronous :: got(2)
    integer :: kept(400), length
    integer(kind=MPI_ADDRESS_KIND) :: address
    call MPI_Alloc_mem(8_MPI_ADDRESS_KIND, MPI_INFO_NULL, place)
    call c_f_pointer(place, numbers, [2])
    numbers = rank
    call MPI_Win_create(numbers, 8_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, window)
    call MPI_Win_fence(0, window)
    call MPI_Get(got, 2, MPI_INTEGER, right, 0_MPI_ADDRESS_KIND, 2, MPI_INTEGER, window)
    call MPI_Win_fence(0, window)
    call check(all(got == right), 61)
    call MPI_Win_free(window)
    call MPI_Free_mem(numbers)
    kept = 0
    call MPI_Buffer_attach(kept, 1600)
    call MPI_Bsend(rank, 1, MPI_INTEGER, right, 3, MPI_COMM_WORLD)
    call MPI_Recv(got, 1, MPI_INTEGER, left, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Buffer_detach(place, length)
    call MPI_Get_address(kept, address)
    call check(length == 1600 .and. transfer(place, address) == address, 62)
  end subroutine memory

  subroutine types
    type(MPI_Datatype) :: datatype
    integer(kind=MPI_ADDRESS_KIND) :: lower, extent, place, next
    type(MPI_Comm) :: grid
    integer :: pair(2), dims(1), coords(1), bytes
    logical :: periods(1)
    call MPI_Type_create_struct(2, [1, 1], [0_MPI_ADDRESS_KIND, 16_MPI_ADDRESS_KIND], [MPI_REAL, MPI_INTEGER], datatype)
    call MPI_Type_commit(datatype)
    call MPI_Type_get_extent(datatype, lower, extent)
    call check(lower == 0 .and. extent == 20, 71)
    call MPI_Type_free(datatype)
    call MPI_Get_address(pair(1), place)
    call MPI_Get_address(pair(2), next)
    call check(MPI_Aint_diff(next, place) == 4 .and. MPI_Aint_add(place, 4_MPI_ADDRESS_KIND) == next, 72)
    call MPI_Cart_create(MPI_COMM_WORLD, 1, [size], [.true.], .false., grid)
    call MPI_Cart_get(grid, 1, dims, periods, coords)
    call check(dims(1) == size .and. periods(1) .and. coords(1) == rank, 73)
    call MPI_Comm_free(grid)
    call MPI_Sizeof(periods, bytes)
    call check(bytes == 4, 74)
  end subroutine types

  subroutine profiling
    integer :: number
    integer(kind=MPI_COUNT_KIND) :: bytes
    call PMPI_Comm_rank(MPI_COMM_WORLD, number)
    call check(number == rank, 81)
    call PMPI_Type_size(MPI_INTEGER, bytes)
    call check(bytes == 4 .and. PMPI_Wtime() >= 0, 82)
  end subroutine profiling

  subroutine check(holds, number)
    logical, intent(in) :: holds
    integer, intent(in) :: number
    if (holds) return
    write (0, *) 'check ', number, ' failed'
    flush (0)
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine check
end program f08
