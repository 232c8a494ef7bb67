/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mpi.h - the MPI subset of Canelé, which StarPU, Chameleon and ordinary programs with messages, collectives and
 * windows call.
 *
 * For C and C++ programs compiled by canele-mpicc or canele-mpicxx. MPI_THREAD_MULTIPLE is always provided, so any
 * thread may call any function. An MPI function that is not declared here does not exist, on purpose. Its use is a
 * compile or link error, never a silent no-op.
 *
 * Types and constants have the layout and the values of the standard ABI of MPI 5.0. A handle is a pointer to a
 * structure that does not exist. The null handle of a kind is not 0, and 0 is never valid.
 */
#ifndef CANELE_MPI_H
#define CANELE_MPI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define CANELE_MPI_API __attribute__((visibility("default")))
#else
#define CANELE_MPI_API
#endif

/* StarPU requests MPI_THREAD_MULTIPLE if this is defined. */
#define MAD_MPI 1
#define CANELE_MPI 1
#define MPI_VERSION 3
#define MPI_SUBVERSION 1

/* -------------------------------------------------------------------------------------------------- types */

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
typedef int MPI_Fint;
typedef intptr_t MPI_Aint;
typedef int64_t MPI_Count;
typedef int64_t MPI_Offset;

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

typedef int MPI_Win_copy_attr_function(MPI_Win window, int keyval, void *extra, void *value, void *copy, int *flag);
typedef int MPI_Win_delete_attr_function(MPI_Win window, int keyval, void *value, void *extra);
typedef void MPI_Win_errhandler_function(MPI_Win *window, int *code, ...);
typedef void MPI_User_function(void *in, void *inout, int *count, MPI_Datatype *datatype);

#include "mpi_constants.h"

/* ---------------------------------------------------------------------------------------------- functions */

/* Declares MPI_<name> and, for profiling tools, PMPI_<name>. */
#define CANELE_MPI_DECLARE(result, name, arguments) \
  CANELE_MPI_API result MPI_##name arguments;       \
  CANELE_MPI_API result PMPI_##name arguments;

/* Start and end. */
CANELE_MPI_DECLARE(int, Init, (int *argc, char ***argv))
CANELE_MPI_DECLARE(int, Init_thread, (int *argc, char ***argv, int required, int *provided))
CANELE_MPI_DECLARE(int, Initialized, (int *flag))
CANELE_MPI_DECLARE(int, Finalize, (void))
CANELE_MPI_DECLARE(int, Finalized, (int *flag))
CANELE_MPI_DECLARE(int, Query_thread, (int *provided))
CANELE_MPI_DECLARE(int, Is_thread_main, (int *flag))
CANELE_MPI_DECLARE(int, Abort, (MPI_Comm comm, int code))

/* The machine and the library. */
CANELE_MPI_DECLARE(double, Wtime, (void))
CANELE_MPI_DECLARE(double, Wtick, (void))
CANELE_MPI_DECLARE(int, Get_processor_name, (char *name, int *length))
CANELE_MPI_DECLARE(int, Get_version, (int *version, int *subversion))
CANELE_MPI_DECLARE(int, Get_library_version, (char *version, int *length))
CANELE_MPI_DECLARE(int, Error_string, (int code, char *text, int *length))
CANELE_MPI_DECLARE(int, Error_class, (int code, int *error_class))

/* Communicators and groups. */
CANELE_MPI_DECLARE(int, Comm_rank, (MPI_Comm comm, int *rank))
CANELE_MPI_DECLARE(int, Comm_size, (MPI_Comm comm, int *size))
CANELE_MPI_DECLARE(int, Comm_dup, (MPI_Comm comm, MPI_Comm *copy))
CANELE_MPI_DECLARE(int, Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *part))
CANELE_MPI_DECLARE(int, Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *part))
CANELE_MPI_DECLARE(int, Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *created))
CANELE_MPI_DECLARE(int, Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *created))
CANELE_MPI_DECLARE(int, Comm_free, (MPI_Comm * comm))
CANELE_MPI_DECLARE(int, Comm_compare, (MPI_Comm first, MPI_Comm second, int *result))
CANELE_MPI_DECLARE(int, Comm_group, (MPI_Comm comm, MPI_Group *group))
CANELE_MPI_DECLARE(int, Comm_set_name, (MPI_Comm comm, const char *name))
CANELE_MPI_DECLARE(int, Comm_get_name, (MPI_Comm comm, char *name, int *length))
CANELE_MPI_DECLARE(int, Comm_get_attr, (MPI_Comm comm, int keyval, void *value, int *flag))
CANELE_MPI_DECLARE(int, Comm_set_errhandler, (MPI_Comm comm, MPI_Errhandler handler))
CANELE_MPI_DECLARE(int, Comm_get_errhandler, (MPI_Comm comm, MPI_Errhandler *handler))
CANELE_MPI_DECLARE(MPI_Fint, Comm_c2f, (MPI_Comm comm))
CANELE_MPI_DECLARE(MPI_Comm, Comm_f2c, (MPI_Fint comm))
CANELE_MPI_DECLARE(int, Group_size, (MPI_Group group, int *size))
CANELE_MPI_DECLARE(int, Group_rank, (MPI_Group group, int *rank))
CANELE_MPI_DECLARE(int, Group_incl, (MPI_Group group, int count, const int *ranks, MPI_Group *part))
CANELE_MPI_DECLARE(int, Group_excl, (MPI_Group group, int count, const int *ranks, MPI_Group *part))
CANELE_MPI_DECLARE(int, Group_range_incl, (MPI_Group group, int count, int ranges[][3], MPI_Group *part))
CANELE_MPI_DECLARE(int, Group_range_excl, (MPI_Group group, int count, int ranges[][3], MPI_Group *part))
CANELE_MPI_DECLARE(int, Group_compare, (MPI_Group first, MPI_Group second, int *result))
CANELE_MPI_DECLARE(int, Group_translate_ranks,
                   (MPI_Group from, int count, const int *ranks, MPI_Group to, int *translated))
CANELE_MPI_DECLARE(int, Group_free, (MPI_Group * group))

/* Point to point. */
CANELE_MPI_DECLARE(int, Send, (const void *buffer, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm))
CANELE_MPI_DECLARE(int, Ssend, (const void *buffer, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm))
CANELE_MPI_DECLARE(int, Recv,
                   (void *buffer, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm, MPI_Status *status))
CANELE_MPI_DECLARE(int, Isend,
                   (const void *buffer, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm,
                    MPI_Request *request))
CANELE_MPI_DECLARE(int, Issend,
                   (const void *buffer, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm,
                    MPI_Request *request))
CANELE_MPI_DECLARE(int, Irecv,
                   (void *buffer, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm, MPI_Request *request))
CANELE_MPI_DECLARE(int, Sendrecv,
                   (const void *send, int send_count, MPI_Datatype send_type, int destination, int send_tag,
                    void *receive, int receive_count, MPI_Datatype receive_type, int source, int receive_tag,
                    MPI_Comm comm, MPI_Status *status))
CANELE_MPI_DECLARE(int, Probe, (int rank, int tag, MPI_Comm comm, MPI_Status *status))
CANELE_MPI_DECLARE(int, Iprobe, (int rank, int tag, MPI_Comm comm, int *flag, MPI_Status *status))
CANELE_MPI_DECLARE(int, Get_count, (const MPI_Status *status, MPI_Datatype type, int *count))

/* Completion. */
CANELE_MPI_DECLARE(int, Wait, (MPI_Request * request, MPI_Status *status))
CANELE_MPI_DECLARE(int, Waitall, (int count, MPI_Request *requests, MPI_Status *statuses))
CANELE_MPI_DECLARE(int, Waitany, (int count, MPI_Request *requests, int *index, MPI_Status *status))
CANELE_MPI_DECLARE(int, Waitsome, (int count, MPI_Request *requests, int *done, int *indices, MPI_Status *statuses))
CANELE_MPI_DECLARE(int, Test, (MPI_Request * request, int *flag, MPI_Status *status))
CANELE_MPI_DECLARE(int, Testall, (int count, MPI_Request *requests, int *flag, MPI_Status *statuses))
CANELE_MPI_DECLARE(int, Testany, (int count, MPI_Request *requests, int *index, int *flag, MPI_Status *status))
CANELE_MPI_DECLARE(int, Testsome, (int count, MPI_Request *requests, int *done, int *indices, MPI_Status *statuses))
CANELE_MPI_DECLARE(int, Cancel, (MPI_Request * request))
CANELE_MPI_DECLARE(int, Test_cancelled, (const MPI_Status *status, int *flag))
CANELE_MPI_DECLARE(int, Request_free, (MPI_Request * request))

/* Collectives, each in its blocking and its non-blocking form. */
CANELE_MPI_DECLARE(int, Barrier, (MPI_Comm comm))
CANELE_MPI_DECLARE(int, Ibarrier, (MPI_Comm comm, MPI_Request *request))
CANELE_MPI_DECLARE(int, Bcast, (void *memory, int count, MPI_Datatype type, int root, MPI_Comm comm))
CANELE_MPI_DECLARE(int, Ibcast,
                   (void *memory, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request))
CANELE_MPI_DECLARE(int, Gather,
                   (const void *send, int send_count, MPI_Datatype send_type, void *receive, int receive_count,
                    MPI_Datatype receive_type, int root, MPI_Comm comm))
CANELE_MPI_DECLARE(int, Igather,
                   (const void *send, int send_count, MPI_Datatype send_type, void *receive, int receive_count,
                    MPI_Datatype receive_type, int root, MPI_Comm comm, MPI_Request *request))
CANELE_MPI_DECLARE(int, Gatherv,
                   (const void *send, int send_count, MPI_Datatype send_type, void *receive, const int *receive_counts,
                    const int *receive_places, MPI_Datatype receive_type, int root, MPI_Comm comm))
CANELE_MPI_DECLARE(int, Igatherv,
                   (const void *send, int send_count, MPI_Datatype send_type, void *receive, const int *receive_counts,
                    const int *receive_places, MPI_Datatype receive_type, int root, MPI_Comm comm,
                    MPI_Request *request))
CANELE_MPI_DECLARE(int, Scatter,
                   (const void *send, int send_count, MPI_Datatype send_type, void *receive, int receive_count,
                    MPI_Datatype receive_type, int root, MPI_Comm comm))
CANELE_MPI_DECLARE(int, Iscatter,
                   (const void *send, int send_count, MPI_Datatype send_type, void *receive, int receive_count,
                    MPI_Datatype receive_type, int root, MPI_Comm comm, MPI_Request *request))
CANELE_MPI_DECLARE(int, Scatterv,
                   (const void *send, const int *send_counts, const int *send_places, MPI_Datatype send_type,
                    void *receive, int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm))
CANELE_MPI_DECLARE(int, Iscatterv,
                   (const void *send, const int *send_counts, const int *send_places, MPI_Datatype send_type,
                    void *receive, int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm,
                    MPI_Request *request))
CANELE_MPI_DECLARE(int, Allgather,
                   (const void *send, int send_count, MPI_Datatype send_type, void *receive, int receive_count,
                    MPI_Datatype receive_type, MPI_Comm comm))
CANELE_MPI_DECLARE(int, Iallgather,
                   (const void *send, int send_count, MPI_Datatype send_type, void *receive, int receive_count,
                    MPI_Datatype receive_type, MPI_Comm comm, MPI_Request *request))
CANELE_MPI_DECLARE(int, Allgatherv,
                   (const void *send, int send_count, MPI_Datatype send_type, void *receive, const int *receive_counts,
                    const int *receive_places, MPI_Datatype receive_type, MPI_Comm comm))
CANELE_MPI_DECLARE(int, Iallgatherv,
                   (const void *send, int send_count, MPI_Datatype send_type, void *receive, const int *receive_counts,
                    const int *receive_places, MPI_Datatype receive_type, MPI_Comm comm, MPI_Request *request))
CANELE_MPI_DECLARE(int, Alltoall,
                   (const void *send, int send_count, MPI_Datatype send_type, void *receive, int receive_count,
                    MPI_Datatype receive_type, MPI_Comm comm))
CANELE_MPI_DECLARE(int, Ialltoall,
                   (const void *send, int send_count, MPI_Datatype send_type, void *receive, int receive_count,
                    MPI_Datatype receive_type, MPI_Comm comm, MPI_Request *request))
CANELE_MPI_DECLARE(int, Alltoallv,
                   (const void *send, const int *send_counts, const int *send_places, MPI_Datatype send_type,
                    void *receive, const int *receive_counts, const int *receive_places, MPI_Datatype receive_type,
                    MPI_Comm comm))
CANELE_MPI_DECLARE(int, Ialltoallv,
                   (const void *send, const int *send_counts, const int *send_places, MPI_Datatype send_type,
                    void *receive, const int *receive_counts, const int *receive_places, MPI_Datatype receive_type,
                    MPI_Comm comm, MPI_Request *request))
CANELE_MPI_DECLARE(int, Alltoallw,
                   (const void *send, const int *send_counts, const int *send_places, const MPI_Datatype *send_types,
                    void *receive, const int *receive_counts, const int *receive_places,
                    const MPI_Datatype *receive_types, MPI_Comm comm))
CANELE_MPI_DECLARE(int, Ialltoallw,
                   (const void *send, const int *send_counts, const int *send_places, const MPI_Datatype *send_types,
                    void *receive, const int *receive_counts, const int *receive_places,
                    const MPI_Datatype *receive_types, MPI_Comm comm, MPI_Request *request))
CANELE_MPI_DECLARE(int, Reduce,
                   (const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm))
CANELE_MPI_DECLARE(int, Ireduce,
                   (const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
                    MPI_Request *request))
CANELE_MPI_DECLARE(int, Allreduce,
                   (const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm))
CANELE_MPI_DECLARE(int, Iallreduce,
                   (const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                    MPI_Request *request))
CANELE_MPI_DECLARE(int, Reduce_scatter,
                   (const void *send, void *receive, const int *counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm))
CANELE_MPI_DECLARE(int, Ireduce_scatter,
                   (const void *send, void *receive, const int *counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                    MPI_Request *request))
CANELE_MPI_DECLARE(int, Reduce_scatter_block,
                   (const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm))
CANELE_MPI_DECLARE(int, Ireduce_scatter_block,
                   (const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                    MPI_Request *request))
CANELE_MPI_DECLARE(int, Scan, (const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm))
CANELE_MPI_DECLARE(int, Iscan,
                   (const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                    MPI_Request *request))
CANELE_MPI_DECLARE(int, Exscan,
                   (const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm))
CANELE_MPI_DECLARE(int, Iexscan,
                   (const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                    MPI_Request *request))

/* Operators. */
CANELE_MPI_DECLARE(int, Op_create, (MPI_User_function * function, int commute, MPI_Op *op))
CANELE_MPI_DECLARE(int, Op_free, (MPI_Op * op))
CANELE_MPI_DECLARE(int, Op_commutative, (MPI_Op op, int *commute))
CANELE_MPI_DECLARE(int, Reduce_local, (const void *in, void *inout, int count, MPI_Datatype type, MPI_Op op))

/* Datatypes. */
CANELE_MPI_DECLARE(int, Type_contiguous, (int count, MPI_Datatype element, MPI_Datatype *type))
CANELE_MPI_DECLARE(int, Type_vector, (int count, int block, int stride, MPI_Datatype element, MPI_Datatype *type))
CANELE_MPI_DECLARE(int, Type_create_hvector,
                   (int count, int block, MPI_Aint stride, MPI_Datatype element, MPI_Datatype *type))
CANELE_MPI_DECLARE(int, Type_indexed,
                   (int count, const int *blocks, const int *displacements, MPI_Datatype element, MPI_Datatype *type))
CANELE_MPI_DECLARE(int, Type_create_hindexed,
                   (int count, const int *blocks, const MPI_Aint *displacements, MPI_Datatype element,
                    MPI_Datatype *type))
CANELE_MPI_DECLARE(int, Type_create_indexed_block,
                   (int count, int block, const int *displacements, MPI_Datatype element, MPI_Datatype *type))
CANELE_MPI_DECLARE(int, Type_create_hindexed_block,
                   (int count, int block, const MPI_Aint *displacements, MPI_Datatype element, MPI_Datatype *type))
CANELE_MPI_DECLARE(int, Type_create_subarray,
                   (int dimensions, const int *sizes, const int *subsizes, const int *starts, int order,
                    MPI_Datatype element, MPI_Datatype *type))
CANELE_MPI_DECLARE(int, Type_create_struct,
                   (int count, const int *blocks, const MPI_Aint *displacements, const MPI_Datatype *elements,
                    MPI_Datatype *type))
CANELE_MPI_DECLARE(int, Type_create_resized,
                   (MPI_Datatype element, MPI_Aint lower, MPI_Aint extent, MPI_Datatype *type))
CANELE_MPI_DECLARE(int, Type_dup, (MPI_Datatype element, MPI_Datatype *type))
CANELE_MPI_DECLARE(int, Type_commit, (MPI_Datatype * type))
CANELE_MPI_DECLARE(int, Type_free, (MPI_Datatype * type))
CANELE_MPI_DECLARE(int, Type_size, (MPI_Datatype type, int *size))
CANELE_MPI_DECLARE(int, Type_get_extent, (MPI_Datatype type, MPI_Aint *lower, MPI_Aint *extent))
CANELE_MPI_DECLARE(int, Type_get_true_extent, (MPI_Datatype type, MPI_Aint *lower, MPI_Aint *extent))
CANELE_MPI_DECLARE(int, Type_get_envelope,
                   (MPI_Datatype type, int *integers, int *addresses, int *types, int *combiner))
CANELE_MPI_DECLARE(int, Type_get_contents,
                   (MPI_Datatype type, int max_integers, int max_addresses, int max_types, int *integers,
                    MPI_Aint *addresses, MPI_Datatype *types))
CANELE_MPI_DECLARE(int, Type_get_name, (MPI_Datatype type, char *name, int *length))
CANELE_MPI_DECLARE(int, Type_set_name, (MPI_Datatype type, const char *name))
CANELE_MPI_DECLARE(int, Get_address, (const void *location, MPI_Aint *address))
CANELE_MPI_DECLARE(int, Pack,
                   (const void *in, int count, MPI_Datatype type, void *out, int size, int *position, MPI_Comm comm))
CANELE_MPI_DECLARE(int, Unpack,
                   (const void *in, int size, int *position, void *out, int count, MPI_Datatype type, MPI_Comm comm))
CANELE_MPI_DECLARE(int, Pack_size, (int count, MPI_Datatype type, MPI_Comm comm, int *size))

/* Infos: pairs of a key and a value. */
CANELE_MPI_DECLARE(int, Info_create, (MPI_Info * info))
CANELE_MPI_DECLARE(int, Info_dup, (MPI_Info info, MPI_Info *copy))
CANELE_MPI_DECLARE(int, Info_free, (MPI_Info * info))
CANELE_MPI_DECLARE(int, Info_set, (MPI_Info info, const char *key, const char *value))
CANELE_MPI_DECLARE(int, Info_delete, (MPI_Info info, const char *key))
CANELE_MPI_DECLARE(int, Info_get, (MPI_Info info, const char *key, int length, char *value, int *flag))
CANELE_MPI_DECLARE(int, Info_get_valuelen, (MPI_Info info, const char *key, int *length, int *flag))
CANELE_MPI_DECLARE(int, Info_get_nkeys, (MPI_Info info, int *count))
CANELE_MPI_DECLARE(int, Info_get_nthkey, (MPI_Info info, int n, char *key))

/* Windows: memory that other ranks access. */
CANELE_MPI_DECLARE(int, Alloc_mem, (MPI_Aint size, MPI_Info info, void *base))
CANELE_MPI_DECLARE(int, Free_mem, (void *base))
CANELE_MPI_DECLARE(int, Win_create,
                   (void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *window))
CANELE_MPI_DECLARE(int, Win_allocate,
                   (MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *window))
CANELE_MPI_DECLARE(int, Win_allocate_shared,
                   (MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *window))
CANELE_MPI_DECLARE(int, Win_shared_query, (MPI_Win window, int rank, MPI_Aint *size, int *unit, void *base))
CANELE_MPI_DECLARE(int, Win_create_dynamic, (MPI_Info info, MPI_Comm comm, MPI_Win *window))
CANELE_MPI_DECLARE(int, Win_attach, (MPI_Win window, void *base, MPI_Aint size))
CANELE_MPI_DECLARE(int, Win_detach, (MPI_Win window, const void *base))
CANELE_MPI_DECLARE(MPI_Aint, Aint_add, (MPI_Aint address, MPI_Aint displacement))
CANELE_MPI_DECLARE(MPI_Aint, Aint_diff, (MPI_Aint first, MPI_Aint second))
CANELE_MPI_DECLARE(int, Win_free, (MPI_Win * window))
CANELE_MPI_DECLARE(int, Win_get_group, (MPI_Win window, MPI_Group *group))
CANELE_MPI_DECLARE(int, Win_set_name, (MPI_Win window, const char *name))
CANELE_MPI_DECLARE(int, Win_get_name, (MPI_Win window, char *name, int *length))
CANELE_MPI_DECLARE(int, Win_create_keyval,
                   (MPI_Win_copy_attr_function * copy, MPI_Win_delete_attr_function *on_delete, int *keyval,
                    void *extra))
CANELE_MPI_DECLARE(int, Win_free_keyval, (int *keyval))
CANELE_MPI_DECLARE(int, Win_set_attr, (MPI_Win window, int keyval, void *value))
CANELE_MPI_DECLARE(int, Win_delete_attr, (MPI_Win window, int keyval))
CANELE_MPI_DECLARE(int, Win_get_attr, (MPI_Win window, int keyval, void *value, int *flag))
CANELE_MPI_DECLARE(int, Win_set_info, (MPI_Win window, MPI_Info info))
CANELE_MPI_DECLARE(int, Win_get_info, (MPI_Win window, MPI_Info *info))
CANELE_MPI_DECLARE(int, Win_create_errhandler, (MPI_Win_errhandler_function * function, MPI_Errhandler *handler))
CANELE_MPI_DECLARE(int, Win_call_errhandler, (MPI_Win window, int code))
CANELE_MPI_DECLARE(int, Errhandler_free, (MPI_Errhandler * handler))
CANELE_MPI_DECLARE(int, Win_set_errhandler, (MPI_Win window, MPI_Errhandler handler))
CANELE_MPI_DECLARE(int, Win_get_errhandler, (MPI_Win window, MPI_Errhandler *handler))
CANELE_MPI_DECLARE(MPI_Fint, Win_c2f, (MPI_Win window))
CANELE_MPI_DECLARE(MPI_Win, Win_f2c, (MPI_Fint window))

/* Synchronisation of windows. */
CANELE_MPI_DECLARE(int, Win_fence, (int asserts, MPI_Win window))
CANELE_MPI_DECLARE(int, Win_lock, (int type, int rank, int asserts, MPI_Win window))
CANELE_MPI_DECLARE(int, Win_unlock, (int rank, MPI_Win window))
CANELE_MPI_DECLARE(int, Win_lock_all, (int asserts, MPI_Win window))
CANELE_MPI_DECLARE(int, Win_unlock_all, (MPI_Win window))
CANELE_MPI_DECLARE(int, Win_flush, (int rank, MPI_Win window))
CANELE_MPI_DECLARE(int, Win_flush_local, (int rank, MPI_Win window))
CANELE_MPI_DECLARE(int, Win_flush_all, (MPI_Win window))
CANELE_MPI_DECLARE(int, Win_flush_local_all, (MPI_Win window))
CANELE_MPI_DECLARE(int, Win_sync, (MPI_Win window))
CANELE_MPI_DECLARE(int, Win_post, (MPI_Group group, int asserts, MPI_Win window))
CANELE_MPI_DECLARE(int, Win_start, (MPI_Group group, int asserts, MPI_Win window))
CANELE_MPI_DECLARE(int, Win_complete, (MPI_Win window))
CANELE_MPI_DECLARE(int, Win_wait, (MPI_Win window))
CANELE_MPI_DECLARE(int, Win_test, (MPI_Win window, int *flag))

/* One-sided operations. */
CANELE_MPI_DECLARE(int, Put,
                   (const void *origin, int origin_count, MPI_Datatype origin_type, int rank, MPI_Aint displacement,
                    int target_count, MPI_Datatype target_type, MPI_Win window))
CANELE_MPI_DECLARE(int, Rput,
                   (const void *origin, int origin_count, MPI_Datatype origin_type, int rank, MPI_Aint displacement,
                    int target_count, MPI_Datatype target_type, MPI_Win window, MPI_Request *request))
CANELE_MPI_DECLARE(int, Get,
                   (void *origin, int origin_count, MPI_Datatype origin_type, int rank, MPI_Aint displacement,
                    int target_count, MPI_Datatype target_type, MPI_Win window))
CANELE_MPI_DECLARE(int, Rget,
                   (void *origin, int origin_count, MPI_Datatype origin_type, int rank, MPI_Aint displacement,
                    int target_count, MPI_Datatype target_type, MPI_Win window, MPI_Request *request))
CANELE_MPI_DECLARE(int, Fetch_and_op,
                   (const void *origin, void *result, MPI_Datatype type, int rank, MPI_Aint displacement, MPI_Op op,
                    MPI_Win window))
CANELE_MPI_DECLARE(int, Compare_and_swap,
                   (const void *origin, const void *compare, void *result, MPI_Datatype type, int rank,
                    MPI_Aint displacement, MPI_Win window))
CANELE_MPI_DECLARE(int, Accumulate,
                   (const void *origin, int origin_count, MPI_Datatype origin_type, int rank, MPI_Aint displacement,
                    int target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win window))
CANELE_MPI_DECLARE(int, Raccumulate,
                   (const void *origin, int origin_count, MPI_Datatype origin_type, int rank, MPI_Aint displacement,
                    int target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win window, MPI_Request *request))
CANELE_MPI_DECLARE(int, Get_accumulate,
                   (const void *origin, int origin_count, MPI_Datatype origin_type, void *result, int result_count,
                    MPI_Datatype result_type, int rank, MPI_Aint displacement, int target_count,
                    MPI_Datatype target_type, MPI_Op op, MPI_Win window))
CANELE_MPI_DECLARE(int, Rget_accumulate,
                   (const void *origin, int origin_count, MPI_Datatype origin_type, void *result, int result_count,
                    MPI_Datatype result_type, int rank, MPI_Aint displacement, int target_count,
                    MPI_Datatype target_type, MPI_Op op, MPI_Win window, MPI_Request *request))

#ifdef __cplusplus
}
#endif

#endif
