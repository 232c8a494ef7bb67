! SPDX-License-Identifier: BSD-3-Clause
!
! Functions of the program in Fortran, by the module mpi: attributes and what C sees of them, error handlers, generalised
! requests. Run by ctest at several numbers of ranks.
module callback_procedures
  use mpi
  implicit none
  integer :: copies = 0, deletes = 0, handled = 0, queries = 0, frees = 0, cancels = 0
contains
  subroutine copy_doubled(old, keyval, extra_state, value, copied, flag, ierror)
    integer :: old, keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra_state, value, copied
    logical :: flag
    copies = copies + 1
    copied = 2 * value + extra_state
    flag = value /= 13
    ierror = MPI_SUCCESS
    if (old == MPI_COMM_NULL .or. keyval == MPI_KEYVAL_INVALID) ierror = MPI_ERR_OTHER
  end subroutine copy_doubled

  subroutine delete_counted(old, keyval, value, extra_state, ierror)
    integer :: old, keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: value, extra_state
    deletes = deletes + 1
    ierror = MPI_SUCCESS
    if (value == 99) ierror = MPI_ERR_OTHER
    if (old == keyval .or. extra_state < 0) ierror = MPI_ERR_ARG
  end subroutine delete_counted

  subroutine copy_old(old, keyval, extra_state, value, copied, flag, ierror)
    integer :: old, keyval, extra_state, value, copied, ierror
    logical :: flag
    copied = value + extra_state
    flag = old /= keyval
    ierror = MPI_SUCCESS
  end subroutine copy_old

  subroutine on_error(comm, code)
    integer :: comm, code, class, ierror
    call MPI_Error_class(code, class, ierror)
    if (class == MPI_ERR_RANK .and. comm /= MPI_COMM_NULL) handled = handled + 1
  end subroutine on_error

  subroutine query(extra_state, status, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer :: status(MPI_STATUS_SIZE), ierror
    queries = queries + 1
    status(MPI_SOURCE) = int(extra_state)
    status(MPI_TAG) = 3
    call MPI_Status_set_cancelled(status, .true., ierror)
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
    if (.not. complete) cancels = cancels + int(extra_state)
    ierror = MPI_SUCCESS
  end subroutine on_cancel
end module callback_procedures

program callbacks
  use mpi
  use callback_procedures
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    function c_get_attr(comm, keyval, value, flag) bind(C, name="MPI_Comm_get_attr")
      import :: c_intptr_t, c_int, c_ptr
      integer(c_intptr_t), value :: comm
      integer(c_int), value :: keyval
      type(c_ptr) :: value
      integer(c_int) :: flag, c_get_attr
    end function c_get_attr
    function c_set_attr(comm, keyval, value) bind(C, name="MPI_Comm_set_attr")
      import :: c_intptr_t, c_int
      integer(c_intptr_t), value :: comm, value
      integer(c_int), value :: keyval
      integer(c_int) :: c_set_attr
    end function c_set_attr
  end interface
  integer :: ierror

  call MPI_Init(ierror)
  call attributes
  call attributes_and_c
  call attributes_of_mpi1
  call error_handlers
  call generalised_requests
  call texts
  call process_sets
  call memory
  call MPI_Finalize(ierror)

contains
  subroutine attributes
    integer :: keyval, other, comm, datatype, copy, window
    integer(kind=MPI_ADDRESS_KIND) :: value, base, memory(4)
    logical :: flag
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierror)
    call check(flag .and. value >= 32767, 1)
    call MPI_Comm_create_keyval(copy_doubled, delete_counted, keyval, 5_MPI_ADDRESS_KIND, ierror)
    call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, 4294967296_MPI_ADDRESS_KIND, ierror)
    call MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, value, flag, ierror)
    call check(flag .and. value == 4294967296_MPI_ADDRESS_KIND, 2)
    call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierror)
    call MPI_Comm_get_attr(comm, keyval, value, flag, ierror)
    call check(flag .and. value == 8589934597_MPI_ADDRESS_KIND .and. copies == 1, 3)
    call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, 13_MPI_ADDRESS_KIND, ierror)
    call check(deletes == 1, 4)
    call MPI_Comm_free(comm, ierror)
    call check(deletes == 2, 5)
    call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierror)
    call MPI_Comm_get_attr(comm, keyval, value, flag, ierror)
    call check(.not. flag .and. copies == 2, 6)
    call MPI_Comm_set_attr(comm, keyval, 99_MPI_ADDRESS_KIND, ierror)
    call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN, ierror)
    call MPI_Comm_delete_attr(comm, keyval, ierror)
    call check(ierror /= MPI_SUCCESS, 7)
    call MPI_Comm_get_attr(comm, keyval, value, flag, ierror)
    call check(flag .and. value == 99, 8)
    call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, other, 0_MPI_ADDRESS_KIND, ierror)
    call MPI_Comm_free_keyval(keyval, ierror)
    call check(keyval == MPI_KEYVAL_INVALID, 9)
    call MPI_Comm_set_attr(MPI_COMM_WORLD, other, -7_MPI_ADDRESS_KIND, ierror)
    call MPI_Comm_dup(MPI_COMM_WORLD, copy, ierror)
    call MPI_Comm_get_attr(copy, other, value, flag, ierror)
    call check(flag .and. value == -7, 10)
    call MPI_Comm_free(copy, ierror)
    call MPI_Comm_delete_attr(MPI_COMM_WORLD, other, ierror)
    call MPI_Comm_free_keyval(other, ierror)

    call MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, keyval, 0_MPI_ADDRESS_KIND, ierror)
    call MPI_Type_contiguous(2, MPI_REAL, datatype, ierror)
    call MPI_Type_set_attr(datatype, keyval, 77_MPI_ADDRESS_KIND, ierror)
    call MPI_Type_dup(datatype, copy, ierror)
    call MPI_Type_get_attr(copy, keyval, value, flag, ierror)
    call check(flag .and. value == 77, 11)
    call MPI_Type_free(copy, ierror)
    call MPI_Type_free(datatype, ierror)
    call MPI_Type_free_keyval(keyval, ierror)

    call MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, keyval, 0_MPI_ADDRESS_KIND, ierror)
    call MPI_Win_create(memory, 32_MPI_ADDRESS_KIND, 8, MPI_INFO_NULL, MPI_COMM_WORLD, window, ierror)
    call MPI_Win_set_attr(window, keyval, 5_MPI_ADDRESS_KIND, ierror)
    call MPI_Win_get_attr(window, keyval, value, flag, ierror)
    call check(flag .and. value == 5, 12)
    call MPI_Win_get_attr(window, MPI_WIN_BASE, value, flag, ierror)
    call MPI_Get_address(memory, base, ierror)
    call check(flag .and. value == base, 13)
    call MPI_Win_get_attr(window, MPI_WIN_SIZE, value, flag, ierror)
    call check(flag .and. value == 32, 14)
    call MPI_Win_get_attr(window, MPI_WIN_DISP_UNIT, value, flag, ierror)
    call check(flag .and. value == 8, 15)
    call MPI_Win_get_attr(window, MPI_WIN_CREATE_FLAVOR, value, flag, ierror)
    call check(flag .and. value == MPI_WIN_FLAVOR_CREATE, 16)
    call MPI_Win_free(window, ierror)
    call MPI_Win_free_keyval(keyval, ierror)
  end subroutine attributes

  ! C sees the address of what Fortran has set; Fortran sees what C has set as a number.
  subroutine attributes_and_c
    integer :: keyval, flag, code, copy
    integer(kind=MPI_ADDRESS_KIND) :: value
    integer(kind=MPI_ADDRESS_KIND), pointer :: set
    integer(c_intptr_t) :: world
    logical :: is_there
    type(c_ptr) :: place
    world = MPI_COMM_WORLD
    call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, keyval, 0_MPI_ADDRESS_KIND, ierror)
    call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, 1099511627776_MPI_ADDRESS_KIND, ierror)
    code = c_get_attr(world, keyval, place, flag)
    call c_f_pointer(place, set)
    call check(code == MPI_SUCCESS .and. flag == 1 .and. set == 1099511627776_MPI_ADDRESS_KIND, 21)
    code = c_set_attr(world, keyval, 4660_c_intptr_t)
    call MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, value, is_there, ierror)
    call check(is_there .and. value == 4660, 22)
    call MPI_Comm_dup(MPI_COMM_WORLD, copy, ierror)
    code = c_get_attr(int(copy, c_intptr_t), keyval, place, flag)
    call check(flag == 1 .and. transfer(place, value) == 4660, 23)
    call MPI_Comm_free(copy, ierror)
    call MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval, ierror)
    call MPI_Comm_free_keyval(keyval, ierror)
  end subroutine attributes_and_c

  subroutine attributes_of_mpi1
    integer :: keyval, value, comm
    logical :: flag
    call MPI_Attr_get(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierror)
    call check(flag .and. value >= 32767, 31)
    call MPI_Keyval_create(copy_old, MPI_NULL_DELETE_FN, keyval, 3, ierror)
    call MPI_Attr_put(MPI_COMM_WORLD, keyval, -10, ierror)
    call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierror)
    call MPI_Attr_get(comm, keyval, value, flag, ierror)
    call check(flag .and. value == -7, 32)
    call MPI_Attr_delete(comm, keyval, ierror)
    call MPI_Attr_get(comm, keyval, value, flag, ierror)
    call check(.not. flag, 33)
    call MPI_Comm_free(comm, ierror)
    call MPI_Attr_delete(MPI_COMM_WORLD, keyval, ierror)
    call MPI_Keyval_free(keyval, ierror)
  end subroutine attributes_of_mpi1

  subroutine error_handlers
    integer :: handler, comm, window, nothing(1)
    nothing = 0
    call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierror)
    call MPI_Comm_create_errhandler(on_error, handler, ierror)
    call MPI_Comm_set_errhandler(comm, handler, ierror)
    call MPI_Errhandler_free(handler, ierror)
    call check(handler == MPI_ERRHANDLER_NULL, 41)
    call MPI_Send(nothing, 1, MPI_INTEGER, -77, 0, comm, ierror)
    call check(handled == 1 .and. ierror /= MPI_SUCCESS, 42)
    call MPI_Comm_call_errhandler(comm, MPI_ERR_RANK, ierror)
    call check(handled == 2 .and. ierror == MPI_SUCCESS, 43)
    call MPI_Win_create(nothing, 4_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, comm, window, ierror)
    call MPI_Win_create_errhandler(on_error, handler, ierror)
    call MPI_Win_set_errhandler(window, handler, ierror)
    call MPI_Win_call_errhandler(window, MPI_ERR_RANK, ierror)
    call check(handled == 3, 44)
    call MPI_Errhandler_free(handler, ierror)
    call MPI_Win_free(window, ierror)
    call MPI_Comm_free(comm, ierror)
  end subroutine error_handlers

  subroutine generalised_requests
    integer :: request, status(MPI_STATUS_SIZE)
    logical :: cancelled
    call MPI_Grequest_start(query, on_free, on_cancel, 40_MPI_ADDRESS_KIND, request, ierror)
    call MPI_Cancel(request, ierror)
    call check(cancels == 40, 51)
    call MPI_Grequest_complete(request, ierror)
    call MPI_Wait(request, status, ierror)
    call check(status(MPI_SOURCE) == 40 .and. status(MPI_TAG) == 3, 52)
    call MPI_Test_cancelled(status, cancelled, ierror)
    call check(cancelled .and. queries == 1 .and. frees == 40, 53)
    call check(request == MPI_REQUEST_NULL, 54)
  end subroutine generalised_requests

  subroutine texts
    integer :: info, length
    logical :: flag
    character(len=6) :: value
    call MPI_Info_create(info, ierror)
    call MPI_Info_set(info, 'key', 'longer than six', ierror)
    length = 6
    call MPI_Info_get_string(info, 'key', length, value, flag, ierror)
    call check(flag .and. length == 15 .and. value == 'longer', 61)
    length = 6
    value = 'as was'
    call MPI_Info_get_string(info, 'none', length, value, flag, ierror)
    call check(.not. flag .and. value == 'as was', 62)
    call MPI_Info_get(info, 'none', 6, value, flag, ierror)
    call check(.not. flag .and. value == 'as was', 63)
    length = 0
    call MPI_Info_get_string(info, 'key', length, value, flag, ierror)
    call check(flag .and. length == 15 .and. value == 'as was', 64)
    call MPI_Info_free(info, ierror)
    call MPI_Info_create_env(info, ierror)
    call MPI_Info_free(info, ierror)
    call MPI_Pcontrol(1)
    call MPI_Sizeof(value, length, ierror)
    call check(length == 6, 65)
  end subroutine texts

  subroutine process_sets
    integer :: session, sets, length
    character(len=5) :: name
    call MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, session, ierror)
    call MPI_Session_get_num_psets(session, MPI_INFO_NULL, sets, ierror)
    call check(sets >= 2, 66)
    length = 0
    name = 'as wa'
    call MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, length, name, ierror)
    call check(length == len('mpi://WORLD') .and. name == 'as wa', 67)
    call MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, length, name, ierror)
    call check(length == len('mpi://WORLD') .and. name == 'mpi:/', 68)
    call MPI_Session_get_nth_pset(session, MPI_INFO_NULL, sets, length, name, ierror)
    call check(ierror /= MPI_SUCCESS .and. name == 'mpi:/', 69)
    call MPI_Session_finalize(session, ierror)
  end subroutine process_sets

  subroutine memory
    type(c_ptr) :: place
    integer, pointer :: numbers(:)
    integer(kind=MPI_ADDRESS_KIND) :: address
    integer :: kept(300), length
    call MPI_Alloc_mem(12_MPI_ADDRESS_KIND, MPI_INFO_NULL, place, ierror)
    call c_f_pointer(place, numbers, [3])
    numbers = 7
    call MPI_Free_mem(numbers, ierror)
    call MPI_Alloc_mem(12_MPI_ADDRESS_KIND, MPI_INFO_NULL, address, ierror)
    call check(address /= 0, 71)
    call c_f_pointer(transfer(address, place), numbers, [3])
    call MPI_Free_mem(numbers, ierror)
    kept = 5
    call MPI_Buffer_attach(kept, 1200, ierror)
    call MPI_Buffer_detach(kept, length, ierror)
    call check(length == 1200 .and. kept(1) == 5 .and. kept(2) == 5, 72)
  end subroutine memory

  subroutine check(holds, number)
    logical, intent(in) :: holds
    integer, intent(in) :: number
    if (holds) return
    write (0, *) 'check ', number, ' failed'
    flush (0)
    call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
  end subroutine check
end program callbacks
