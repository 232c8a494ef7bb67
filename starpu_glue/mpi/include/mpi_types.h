/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mpi_types.h - the types of mpi.h: handles, integers, statuses, functions of the program.
 *
 * Included by mpi.h. The layout is that of the standard ABI of MPI 5.0. */
#ifndef CANELE_MPI_TYPES_H
#define CANELE_MPI_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct MPI_ABI_Comm *MPI_Comm;
typedef struct MPI_ABI_Group *MPI_Group;
typedef struct MPI_ABI_Datatype *MPI_Datatype;
typedef struct MPI_ABI_Op *MPI_Op;
typedef struct MPI_ABI_Request *MPI_Request;
typedef struct MPI_ABI_Errhandler *MPI_Errhandler;
typedef struct MPI_ABI_Win *MPI_Win;
typedef struct MPI_ABI_Info *MPI_Info;
typedef struct MPI_ABI_File *MPI_File;
typedef struct MPI_ABI_Message *MPI_Message;
typedef struct MPI_ABI_Session *MPI_Session;
typedef intptr_t MPI_Aint;
typedef int64_t MPI_Count;
typedef int64_t MPI_Offset;

#ifdef CANELE_STANDARD_ABI
typedef struct MPI_Status {
  int MPI_SOURCE;
  int MPI_TAG;
  int MPI_ERROR;
  int MPI_internal[5];
} MPI_Status;
#else
/* A number of 8 bytes that is aligned like an int. */
#if defined(__GNUC__)
typedef MPI_Count CANELE_MPI_Bytes __attribute__((aligned(4)));
#else
typedef MPI_Count CANELE_MPI_Bytes;
#endif

/* StarPU assigns the fields `cancelled` and `size`. */
typedef struct MPI_Status {
  int MPI_SOURCE;
  int MPI_TAG;
  int MPI_ERROR;
  int cancelled;
  CANELE_MPI_Bytes size; /* bytes received */
  int reserved[2];
} MPI_Status;

typedef int MPI_Fint;

/* A status of Fortran's module mpi_f08. */
typedef struct MPI_F08_status {
  MPI_Fint MPI_SOURCE;
  MPI_Fint MPI_TAG;
  MPI_Fint MPI_ERROR;
  MPI_Fint MPI_internal[5];
} MPI_F08_status;
#endif

typedef int MPI_Comm_copy_attr_function(MPI_Comm comm, int keyval, void *extra, void *value, void *copy, int *flag);
typedef int MPI_Comm_delete_attr_function(MPI_Comm comm, int keyval, void *value, void *extra);
typedef void MPI_Comm_errhandler_function(MPI_Comm *comm, int *code, ...);
typedef int MPI_Type_copy_attr_function(MPI_Datatype type, int keyval, void *extra, void *value, void *copy, int *flag);
typedef int MPI_Type_delete_attr_function(MPI_Datatype type, int keyval, void *value, void *extra);
typedef int MPI_Win_copy_attr_function(MPI_Win window, int keyval, void *extra, void *value, void *copy, int *flag);
typedef int MPI_Win_delete_attr_function(MPI_Win window, int keyval, void *value, void *extra);
typedef void MPI_Win_errhandler_function(MPI_Win *window, int *code, ...);
typedef void MPI_Session_errhandler_function(MPI_Session *session, int *code, ...);
typedef MPI_Comm_errhandler_function MPI_Comm_errhandler_fn; /* deprecated names of MPI-2 */
typedef MPI_Win_errhandler_function MPI_Win_errhandler_fn;
typedef MPI_Comm_copy_attr_function MPI_Copy_function; /* deprecated names of MPI-1 */
typedef MPI_Comm_delete_attr_function MPI_Delete_function;
typedef int MPI_Grequest_query_function(void *extra_state, MPI_Status *status);
typedef int MPI_Grequest_free_function(void *extra_state);
typedef int MPI_Grequest_cancel_function(void *extra_state, int complete);
typedef void MPI_User_function(void *in, void *inout, int *count, MPI_Datatype *datatype);
typedef void MPI_User_function_c(void *in, void *inout, MPI_Count *count, MPI_Datatype *datatype);

#ifdef __cplusplus
}
#endif

#endif
