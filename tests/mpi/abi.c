/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program of the standard ABI of MPI 5.0: compiled with its header, and linked with libmpi_abi only. Handles and
 * statuses as the ABI has them, what the library says about the ABI, and calls of functions that it lacks.
 *
 * Run by ctest with several ranks. One thread. The numbers are written from the standard's tables. */
#include <stddef.h>

#include "check.h"

#ifndef MPI_ABI_VERSION
#error "compile with the header of the standard ABI"
#endif
#ifdef CANELE_MPI
#error "the header of the standard ABI has no names of Canelé"
#endif

static void check_version(void) {
  int major = 0, minor = -1;
  CHECK_EQ(MPI_Abi_get_version(&major, &minor), MPI_SUCCESS);
  CHECK_EQ(major, MPI_ABI_VERSION);
  CHECK_EQ(minor, MPI_ABI_SUBVERSION);
  CHECK(MPI_VERSION == 5 && MPI_SUBVERSION == 0);
}

/* The value of a key must be `expected`. */
static void check_key(MPI_Info info, const char *key, const char *expected) {
  char value[MPI_MAX_INFO_VAL] = "";
  int length = sizeof value, flag = 0;
  CHECK_EQ(MPI_Info_get_string(info, key, &length, value, &flag), MPI_SUCCESS);
  CHECK(flag != 0);
  CHECK(strcmp(value, expected) == 0);
}

static void check_infos(void) {
  MPI_Info info = MPI_INFO_NULL;
  CHECK_EQ(MPI_Abi_get_info(&info), MPI_SUCCESS);
  check_key(info, "mpi_aint_size", "8");
  check_key(info, "mpi_count_size", "8");
  check_key(info, "mpi_offset_size", "8");
  MPI_Info_free(&info);
  CHECK_EQ(MPI_Abi_get_fortran_info(&info), MPI_SUCCESS);
  check_key(info, "mpi_logical_size", "4");
  check_key(info, "mpi_integer_size", "4");
  check_key(info, "mpi_real_size", "4");
  check_key(info, "mpi_double_precision_size", "8");
  check_key(info, "mpi_integer8_supported", "true");
  check_key(info, "mpi_double_complex_supported", "true");
  MPI_Info_free(&info);
  signed char small_true = 7, small_false = 7;
  int32_t is_true = 7, is_false = 7;
  int is_set = 0;
  CHECK_EQ(MPI_Abi_get_fortran_booleans(4, &is_true, &is_false, &is_set), MPI_SUCCESS);
  CHECK(is_set != 0 && is_true == 1 && is_false == 0);
  CHECK_EQ(MPI_Abi_get_fortran_booleans(1, &small_true, &small_false, &is_set), MPI_SUCCESS);
  CHECK(small_true == 1 && small_false == 0);
}

/* The library knows Fortran already, so nothing can be set. */
static void check_setters(void) {
  MPI_Info info = MPI_INFO_NULL;
  int32_t is_true = 1, is_false = 0;
  int is_set = 0;
  MPI_Info_create(&info);
  CHECK_EQ(MPI_Abi_set_fortran_info(info), MPI_ERR_ABI);
  MPI_Info_free(&info);
  CHECK_EQ(MPI_Abi_set_fortran_info(MPI_INFO_NULL), MPI_ERR_INFO);
  CHECK_EQ(MPI_Abi_set_fortran_booleans(4, &is_true, &is_false), MPI_ERR_ABI);
  CHECK_EQ(MPI_Abi_get_fortran_booleans(3, &is_true, &is_false, &is_set), MPI_ERR_ARG);
}

static void check_handles(void) {
  CHECK((size_t)MPI_COMM_WORLD == 0x101 && (size_t)MPI_INT == 0x209 && (size_t)MPI_SUM == 0x21);
  CHECK((size_t)MPI_REQUEST_NULL == 0x180 && (size_t)MPI_FILE_NULL == 0x118);
  CHECK_EQ(MPI_Comm_toint(MPI_COMM_WORLD), 0x101);
  CHECK(MPI_Type_fromint(0x209) == MPI_INT);
  CHECK(MPI_File_fromint(MPI_File_toint(MPI_FILE_NULL)) == MPI_FILE_NULL);
  MPI_Comm comm = MPI_COMM_NULL;
  CHECK_EQ(MPI_Comm_dup(MPI_COMM_WORLD, &comm), MPI_SUCCESS);
  CHECK((size_t)comm > 4095); /* those up to it are reserved */
  CHECK(MPI_Comm_fromint(MPI_Comm_toint(comm)) == comm);
  CHECK_EQ(MPI_Comm_free(&comm), MPI_SUCCESS);
  CHECK((size_t)comm == 0x100);
}

static void check_statuses(void) {
  CHECK(sizeof(MPI_Status) == 32 && offsetof(MPI_Status, MPI_internal) == 12);
  int out[3] = {rank_, 2, 3}, in[4], count = 0;
  MPI_Status both[2];
  memset(both, 0x5a, sizeof both);
  const int from = (rank_ + size_ - 1) % size_;
  CHECK_EQ(MPI_Sendrecv(out, 3, MPI_INT, (rank_ + 1) % size_, 8, in, 4, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG,
                        MPI_COMM_WORLD, &both[0]),
           MPI_SUCCESS);
  CHECK(both[0].MPI_SOURCE == from && both[0].MPI_TAG == 8 && both[0].MPI_ERROR == 0x5a5a5a5a);
  CHECK_EQ(MPI_Get_count(&both[0], MPI_INT, &count), MPI_SUCCESS);
  CHECK_EQ(count, 3);
  for (const char *at = (const char *)&both[1]; at < (const char *)&both[2]; ++at) CHECK_EQ(*at, 0x5a);
}

/* They end as errors that name the function. Those of files do not end the job. */
static void check_missing(void) {
  MPI_File file = MPI_FILE_NULL;
  char text[MPI_MAX_ERROR_STRING] = "", port[MPI_MAX_PORT_NAME];
  int length = 0;
  CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, "/dev/null", MPI_MODE_RDONLY, MPI_INFO_NULL, &file),
           MPI_ERR_UNSUPPORTED_OPERATION);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK_EQ(MPI_Open_port(MPI_INFO_NULL, port), MPI_ERR_UNSUPPORTED_OPERATION);
  CHECK_EQ(PMPI_Open_port(MPI_INFO_NULL, port), MPI_ERR_UNSUPPORTED_OPERATION);
  MPI_Error_string(MPI_ERR_UNSUPPORTED_OPERATION, text, &length);
  CHECK(strstr(text, "MPI_Open_port does not exist") != NULL);
}

int main(int argc, char **argv) {
  check_version();
  check_infos();
  start(&argc, &argv);
  if (argc > 1 && strcmp(argv[1], "missing") == 0) { /* the default error handler ends the job */
    char port[MPI_MAX_PORT_NAME];
    MPI_Open_port(MPI_INFO_NULL, port);
    return 0;
  }
  check_handles();
  check_statuses();
  check_missing();
  check_setters();
  finish();
  check_version();
  return 0;
}
