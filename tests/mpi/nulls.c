/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Every function of mpi.h, with NULL for each argument that points to a result or to an array: MPI_ERR_ARG, and nothing
 * is done.
 *
 * Run by ctest, alone. One thread. The list is complete, and run_mpi.py Nulls checks that: every function of mpi.h that
 * has pointers is here, or in nulls_windows.c.
 */
#include "nulls.h"

#include "mpi1.h"

static int ints[4];
static MPI_Status status;

static void environment(void) {
  REFUSED(MPI_Initialized(NULL));
  REFUSED(MPI_Finalized(NULL));
  REFUSED(MPI_Query_thread(NULL));
  REFUSED(MPI_Is_thread_main(NULL));
  REFUSED(MPI_Get_processor_name(NULL, &value));
  REFUSED(MPI_Get_processor_name(text, NULL));
  REFUSED(MPI_Get_version(NULL, &value));
  REFUSED(MPI_Get_version(&value, NULL));
  REFUSED(MPI_Get_library_version(NULL, &value));
  REFUSED(MPI_Get_library_version(text, NULL));
  REFUSED(MPI_Error_string(MPI_ERR_ARG, NULL, &value));
  REFUSED(MPI_Error_string(MPI_ERR_ARG, text, NULL));
  REFUSED(MPI_Add_error_class(NULL));
  REFUSED(MPI_Add_error_code(MPI_ERR_ARG, NULL));
  REFUSED(MPI_Add_error_string(MPI_ERR_ARG, NULL));
  REFUSED(MPI_Get_hw_resource_info(NULL));
  REFUSED(MPI_Abi_get_version(NULL, &value));
  REFUSED(MPI_Abi_get_version(&value, NULL));
  REFUSED(MPI_Abi_get_info(NULL));
  REFUSED(MPI_Abi_get_fortran_info(NULL));
  REFUSED(MPI_Abi_get_fortran_booleans(4, NULL, ints, &value));
  REFUSED(MPI_Abi_get_fortran_booleans(4, ints, NULL, &value));
  REFUSED(MPI_Abi_get_fortran_booleans(4, ints, ints, NULL));
  REFUSED(MPI_Abi_set_fortran_booleans(4, NULL, ints));
  REFUSED(MPI_Abi_set_fortran_booleans(4, ints, NULL));
  CHECK_EQ(MPI_Error_class(MPI_ERR_ARG, NULL), MPI_ERR_ARG);
  REFUSED(MPI_Get_address(&value, NULL));
}

static void on_comm_error(MPI_Comm *comm, int *code, ...) { (void)comm, (void)code; }
static void on_session_error(MPI_Session *session, int *code, ...) { (void)session, (void)code; }

static void attributes(void) {
  const MPI_Comm world = MPI_COMM_WORLD;
  MPI_Errhandler handler;
  int key;
  REFUSED(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, NULL, NULL));
  REFUSED(MPI_Comm_free_keyval(NULL));
  REFUSED(MPI_Keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, NULL, NULL));
  REFUSED(MPI_Keyval_free(NULL));
  REFUSED(MPI_Attr_get(world, MPI_TAG_UB, NULL, &value));
  REFUSED(MPI_Attr_get(world, MPI_TAG_UB, text, NULL));
  MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, &key, NULL);
  REFUSED(MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, NULL, NULL));
  REFUSED(MPI_Type_free_keyval(NULL));
  REFUSED(MPI_Type_get_attr(MPI_INT, key, NULL, &value));
  REFUSED(MPI_Type_get_attr(MPI_INT, key, text, NULL));
  MPI_Type_free_keyval(&key);
  REFUSED(MPI_Comm_create_errhandler(NULL, &handler));
  REFUSED(MPI_Comm_create_errhandler(on_comm_error, NULL));
  REFUSED(MPI_Errhandler_create(NULL, &handler));
  REFUSED(MPI_Errhandler_create(on_comm_error, NULL));
  REFUSED(MPI_Errhandler_get(world, NULL));
}

static void communicators(void) {
  const MPI_Comm world = MPI_COMM_WORLD;
  MPI_Group group;
  MPI_Comm copy;
  MPI_Request request;
  int range[1][3] = {{0, 0, 1}};
  MPI_Comm_group(world, &group);
  REFUSED(MPI_Comm_rank(world, NULL));
  REFUSED(MPI_Comm_size(world, NULL));
  REFUSED(MPI_Comm_dup(world, NULL));
  REFUSED(MPI_Comm_dup_with_info(world, MPI_INFO_NULL, NULL));
  REFUSED(MPI_Comm_idup(world, NULL, &request));
  REFUSED(MPI_Comm_idup(world, &copy, NULL));
  REFUSED(MPI_Comm_idup_with_info(world, MPI_INFO_NULL, NULL, &request));
  REFUSED(MPI_Comm_idup_with_info(world, MPI_INFO_NULL, &copy, NULL));
  REFUSED(MPI_Comm_get_info(world, NULL));
  REFUSED(MPI_Comm_test_inter(world, NULL));
  REFUSED(MPI_Comm_split(world, 0, 0, NULL));
  REFUSED(MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, NULL));
  REFUSED(MPI_Comm_create(world, group, NULL));
  REFUSED(MPI_Comm_create_group(world, group, 0, NULL));
  REFUSED(MPI_Comm_remote_size(world, NULL));
  REFUSED(MPI_Comm_remote_group(world, NULL));
  REFUSED(MPI_Intercomm_create(world, 0, world, 0, 0, NULL));
  REFUSED(MPI_Intercomm_merge(world, 0, NULL));
  REFUSED(MPI_Comm_free(NULL));
  REFUSED(MPI_Comm_disconnect(NULL));
  REFUSED(MPI_Comm_get_parent(NULL));
  REFUSED(MPI_Comm_compare(world, world, NULL));
  REFUSED(MPI_Comm_group(world, NULL));
  REFUSED(MPI_Comm_set_name(world, NULL));
  REFUSED(MPI_Comm_get_name(world, NULL, &value));
  REFUSED(MPI_Comm_get_name(world, text, NULL));
  REFUSED(MPI_Comm_get_attr(world, MPI_TAG_UB, NULL, &value));
  REFUSED(MPI_Comm_get_attr(world, MPI_TAG_UB, text, NULL));
  REFUSED(MPI_Comm_get_errhandler(world, NULL));
  REFUSED(MPI_Group_size(group, NULL));
  REFUSED(MPI_Group_rank(group, NULL));
  REFUSED(MPI_Group_incl(group, 1, NULL, &group));
  REFUSED(MPI_Group_incl(group, 1, &zero, NULL));
  REFUSED(MPI_Group_excl(group, 1, NULL, &group));
  REFUSED(MPI_Group_excl(group, 1, &zero, NULL));
  REFUSED(MPI_Group_range_incl(group, 1, NULL, &group));
  REFUSED(MPI_Group_range_incl(group, 1, range, NULL));
  REFUSED(MPI_Group_range_excl(group, 1, NULL, &group));
  REFUSED(MPI_Group_range_excl(group, 1, range, NULL));
  REFUSED(MPI_Group_union(group, group, NULL));
  REFUSED(MPI_Group_intersection(group, group, NULL));
  REFUSED(MPI_Group_difference(group, group, NULL));
  REFUSED(MPI_Group_compare(group, group, NULL));
  REFUSED(MPI_Group_translate_ranks(group, 1, NULL, group, &value));
  REFUSED(MPI_Group_translate_ranks(group, 1, &zero, group, NULL));
  REFUSED(MPI_Group_free(NULL));
  MPI_Group_free(&group);
}

static void sessions(void) {
  MPI_Session session = MPI_SESSION_NULL;
  MPI_Group group = MPI_GROUP_EMPTY;
  MPI_Comm comm;
  MPI_Info info;
  REFUSED(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, NULL));
  CHECK_EQ(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session), MPI_SUCCESS);
  REFUSED(MPI_Session_get_info(session, NULL));
  REFUSED(MPI_Session_get_num_psets(session, MPI_INFO_NULL, NULL));
  REFUSED(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, NULL, text));
  ints[0] = 1;
  REFUSED(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, ints, NULL));
  REFUSED(MPI_Session_get_pset_info(session, NULL, &info));
  REFUSED(MPI_Session_get_pset_info(session, "mpi://SELF", NULL));
  REFUSED(MPI_Group_from_session_pset(session, NULL, &group));
  REFUSED(MPI_Group_from_session_pset(session, "mpi://SELF", NULL));
  REFUSED(MPI_Comm_create_from_group(group, NULL, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
  REFUSED(MPI_Comm_create_from_group(group, "tag", MPI_INFO_NULL, MPI_ERRORS_RETURN, NULL));
  REFUSED(MPI_Intercomm_create_from_groups(group, 0, group, 0, NULL, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
  REFUSED(MPI_Intercomm_create_from_groups(group, 0, group, 0, "tag", MPI_INFO_NULL, MPI_ERRORS_RETURN, NULL));
  REFUSED(MPI_Session_create_errhandler(on_session_error, NULL));
  REFUSED(MPI_Session_get_errhandler(session, NULL));
  REFUSED(MPI_Session_detach_buffer(session, NULL, ints));
  REFUSED(MPI_Session_detach_buffer(session, text, NULL));
  REFUSED(MPI_Session_iflush_buffer(session, NULL));
  REFUSED(MPI_Session_finalize(NULL));
  CHECK_EQ(MPI_Session_finalize(&session), MPI_SUCCESS);
}

static void messages(void) {
  const MPI_Comm world = MPI_COMM_WORLD;
  MPI_Request request = MPI_REQUEST_NULL;
  REFUSED(MPI_Isend(&value, 1, MPI_INT, 0, 0, world, NULL));
  REFUSED(MPI_Issend(&value, 1, MPI_INT, 0, 0, world, NULL));
  REFUSED(MPI_Irecv(&value, 1, MPI_INT, 0, 0, world, NULL));
  REFUSED(MPI_Iprobe(0, 0, world, NULL, &status));
  REFUSED(MPI_Get_count(NULL, MPI_INT, &value));
  REFUSED(MPI_Get_count(&status, MPI_INT, NULL));
  REFUSED(MPI_Wait(NULL, &status));
  REFUSED(MPI_Waitall(1, NULL, MPI_STATUSES_IGNORE));
  REFUSED(MPI_Waitall(1, NULL, &status));
  REFUSED(MPI_Waitany(1, NULL, &value, &status));
  REFUSED(MPI_Waitany(1, &request, NULL, &status));
  REFUSED(MPI_Waitsome(1, NULL, &value, ints, &status));
  REFUSED(MPI_Waitsome(1, &request, NULL, ints, &status));
  REFUSED(MPI_Waitsome(1, &request, &value, NULL, &status));
  REFUSED(MPI_Test(NULL, &value, &status));
  REFUSED(MPI_Test(&request, NULL, &status));
  REFUSED(MPI_Testall(1, NULL, &value, &status));
  REFUSED(MPI_Testall(1, &request, NULL, &status));
  REFUSED(MPI_Testany(1, NULL, &value, &other, &status));
  REFUSED(MPI_Testany(1, &request, NULL, &other, &status));
  REFUSED(MPI_Testany(1, &request, &value, NULL, &status));
  REFUSED(MPI_Testsome(1, NULL, &value, ints, &status));
  REFUSED(MPI_Testsome(1, &request, NULL, ints, &status));
  REFUSED(MPI_Testsome(1, &request, &value, NULL, &status));
  REFUSED(MPI_Cancel(NULL));
  REFUSED(MPI_Test_cancelled(NULL, &value));
  REFUSED(MPI_Test_cancelled(&status, NULL));
  REFUSED(MPI_Request_free(NULL));
}

static void persistent_messages(void) {
  const MPI_Comm world = MPI_COMM_WORLD;
  REFUSED(MPI_Send_init(&value, 1, MPI_INT, 0, 0, world, NULL));
  REFUSED(MPI_Ssend_init(&value, 1, MPI_INT, 0, 0, world, NULL));
  REFUSED(MPI_Rsend_init(&value, 1, MPI_INT, 0, 0, world, NULL));
  REFUSED(MPI_Recv_init(&value, 1, MPI_INT, 0, 0, world, NULL));
  REFUSED(MPI_Start(NULL));
  REFUSED(MPI_Startall(1, NULL));
}

static void other_modes(void) {
  const MPI_Comm world = MPI_COMM_WORLD;
  MPI_Message message = MPI_MESSAGE_NULL;
  REFUSED(MPI_Bsend_init(&value, 1, MPI_INT, 0, 0, world, NULL));
  REFUSED(MPI_Ibsend(&value, 1, MPI_INT, 0, 0, world, NULL));
  REFUSED(MPI_Irsend(&value, 1, MPI_INT, 0, 0, world, NULL));
  REFUSED(MPI_Isendrecv(&value, 1, MPI_INT, 0, 0, &other, 1, MPI_INT, 0, 0, world, NULL));
  REFUSED(MPI_Isendrecv_replace(&value, 1, MPI_INT, 0, 0, 0, 0, world, NULL));
  REFUSED(MPI_Comm_detach_buffer(world, NULL, &value));
  REFUSED(MPI_Comm_detach_buffer(world, text, NULL));
  REFUSED(MPI_Comm_iflush_buffer(world, NULL));
  REFUSED(MPI_Buffer_iflush(NULL));
  REFUSED(MPI_Buffer_detach(NULL, &value));
  REFUSED(MPI_Buffer_detach(&address, NULL));
  REFUSED(MPI_Mprobe(0, 0, world, NULL, &status));
  REFUSED(MPI_Improbe(0, 0, world, NULL, &message, &status));
  REFUSED(MPI_Improbe(0, 0, world, &value, NULL, &status));
  REFUSED(MPI_Mrecv(&value, 1, MPI_INT, NULL, &status));
  REFUSED(MPI_Imrecv(&value, 1, MPI_INT, &message, NULL));
  REFUSED(MPI_Imrecv(&value, 1, MPI_INT, NULL, NULL));
}

static void kept_requests(void) {
  MPI_Request request = MPI_REQUEST_NULL;
  REFUSED(MPI_Grequest_start(NULL, NULL, NULL, NULL, NULL));
  REFUSED(MPI_Request_get_status(request, NULL, &status));
  REFUSED(MPI_Request_get_status_all(1, NULL, &value, &status));
  REFUSED(MPI_Request_get_status_all(1, &request, NULL, &status));
  REFUSED(MPI_Request_get_status_any(1, NULL, &value, &other, &status));
  REFUSED(MPI_Request_get_status_any(1, &request, NULL, &other, &status));
  REFUSED(MPI_Request_get_status_any(1, &request, &value, NULL, &status));
  REFUSED(MPI_Request_get_status_some(1, NULL, &value, ints, &status));
  REFUSED(MPI_Request_get_status_some(1, &request, NULL, ints, &status));
  REFUSED(MPI_Request_get_status_some(1, &request, &value, NULL, &status));
}

static void fields_of_statuses(void) {
  MPI_Count counted;
  MPI_F08_status f08;
  REFUSED(MPI_Status_get_source(NULL, &value));
  REFUSED(MPI_Status_get_source(&status, NULL));
  REFUSED(MPI_Status_get_tag(NULL, &value));
  REFUSED(MPI_Status_get_tag(&status, NULL));
  REFUSED(MPI_Status_get_error(NULL, &value));
  REFUSED(MPI_Status_get_error(&status, NULL));
  REFUSED(MPI_Status_set_source(NULL, 0));
  REFUSED(MPI_Status_set_tag(NULL, 0));
  REFUSED(MPI_Status_set_error(NULL, 0));
  REFUSED(MPI_Status_set_cancelled(NULL, 0));
  REFUSED(MPI_Get_elements(NULL, MPI_INT, &value));
  REFUSED(MPI_Get_elements(&status, MPI_INT, NULL));
  REFUSED(MPI_Get_elements_x(NULL, MPI_INT, &counted));
  REFUSED(MPI_Get_elements_x(&status, MPI_INT, NULL));
  REFUSED(MPI_Status_set_elements(NULL, MPI_INT, 1));
  REFUSED(MPI_Status_set_elements_x(NULL, MPI_INT, 1));
  REFUSED(MPI_Status_c2f(NULL, ints));
  REFUSED(MPI_Status_c2f(&status, NULL));
  REFUSED(MPI_Status_f2c(NULL, &status));
  REFUSED(MPI_Status_c2f08(NULL, &f08));
  REFUSED(MPI_Status_c2f08(&status, NULL));
  REFUSED(MPI_Status_f082c(NULL, &status));
  REFUSED(MPI_Status_f2f08(NULL, &f08));
  REFUSED(MPI_Status_f2f08(ints, NULL));
  REFUSED(MPI_Status_f082f(NULL, ints));
  REFUSED(MPI_Status_f082f(&f08, NULL));
}

/* Collectives that do not wait: the request. */
static void requests_of_collectives(void) {
  const MPI_Comm world = MPI_COMM_WORLD;
  const MPI_Datatype type = MPI_INT;
  REFUSED(MPI_Ibarrier(world, NULL));
  REFUSED(MPI_Ibcast(&value, 1, type, 0, world, NULL));
  REFUSED(MPI_Igather(&value, 1, type, &other, 1, type, 0, world, NULL));
  REFUSED(MPI_Igatherv(&value, 1, type, &other, &one, &zero, type, 0, world, NULL));
  REFUSED(MPI_Iscatter(&value, 1, type, &other, 1, type, 0, world, NULL));
  REFUSED(MPI_Iscatterv(&value, &one, &zero, type, &other, 1, type, 0, world, NULL));
  REFUSED(MPI_Iallgather(&value, 1, type, &other, 1, type, world, NULL));
  REFUSED(MPI_Iallgatherv(&value, 1, type, &other, &one, &zero, type, world, NULL));
  REFUSED(MPI_Ialltoall(&value, 1, type, &other, 1, type, world, NULL));
  REFUSED(MPI_Ialltoallv(&value, &one, &zero, type, &other, &one, &zero, type, world, NULL));
  REFUSED(MPI_Ialltoallw(&value, &one, &zero, &type, &other, &one, &zero, &type, world, NULL));
  REFUSED(MPI_Ireduce(&value, &other, 1, type, MPI_SUM, 0, world, NULL));
  REFUSED(MPI_Iallreduce(&value, &other, 1, type, MPI_SUM, world, NULL));
  REFUSED(MPI_Ireduce_scatter(&value, &other, &one, type, MPI_SUM, world, NULL));
  REFUSED(MPI_Ireduce_scatter_block(&value, &other, 1, type, MPI_SUM, world, NULL));
  REFUSED(MPI_Iscan(&value, &other, 1, type, MPI_SUM, world, NULL));
  REFUSED(MPI_Iexscan(&value, &other, 1, type, MPI_SUM, world, NULL));
}

/* Arrays with an entry for each rank. */
static void arrays_of_collectives(void) {
  const MPI_Comm world = MPI_COMM_WORLD;
  const MPI_Datatype type = MPI_INT;
  REFUSED(MPI_Gatherv(&value, 1, type, &other, NULL, &zero, type, 0, world));
  REFUSED(MPI_Gatherv(&value, 1, type, &other, &one, NULL, type, 0, world));
  REFUSED(MPI_Scatterv(&value, NULL, &zero, type, &other, 1, type, 0, world));
  REFUSED(MPI_Scatterv(&value, &one, NULL, type, &other, 1, type, 0, world));
  REFUSED(MPI_Allgatherv(&value, 1, type, &other, NULL, &zero, type, world));
  REFUSED(MPI_Allgatherv(&value, 1, type, &other, &one, NULL, type, world));
  REFUSED(MPI_Alltoallv(&value, NULL, &zero, type, &other, &one, &zero, type, world));
  REFUSED(MPI_Alltoallv(&value, &one, NULL, type, &other, &one, &zero, type, world));
  REFUSED(MPI_Alltoallv(&value, &one, &zero, type, &other, NULL, &zero, type, world));
  REFUSED(MPI_Alltoallv(&value, &one, &zero, type, &other, &one, NULL, type, world));
  REFUSED(MPI_Alltoallw(&value, NULL, &zero, &type, &other, &one, &zero, &type, world));
  REFUSED(MPI_Alltoallw(&value, &one, NULL, &type, &other, &one, &zero, &type, world));
  REFUSED(MPI_Alltoallw(&value, &one, &zero, NULL, &other, &one, &zero, &type, world));
  REFUSED(MPI_Alltoallw(&value, &one, &zero, &type, &other, NULL, &zero, &type, world));
  REFUSED(MPI_Alltoallw(&value, &one, &zero, &type, &other, &one, NULL, &type, world));
  REFUSED(MPI_Alltoallw(&value, &one, &zero, &type, &other, &one, &zero, NULL, world));
  REFUSED(MPI_Reduce_scatter(&value, &other, NULL, type, MPI_SUM, world));
}

static void grids_and_graphs(void) {
  const MPI_Comm world = MPI_COMM_WORLD;
  MPI_Comm comm;
  REFUSED(MPI_Topo_test(world, NULL));
  REFUSED(MPI_Dims_create(1, 1, NULL));
  REFUSED(MPI_Cart_create(world, 1, NULL, &zero, 0, &comm));
  REFUSED(MPI_Cart_create(world, 1, &one, NULL, 0, &comm));
  REFUSED(MPI_Cart_create(world, 1, &one, &zero, 0, NULL));
  REFUSED(MPI_Cart_map(world, 1, NULL, &zero, &value));
  REFUSED(MPI_Cart_map(world, 1, &one, NULL, &value));
  REFUSED(MPI_Cart_map(world, 1, &one, &zero, NULL));
  MPI_Cart_create(world, 1, &one, &one, 0, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  REFUSED(MPI_Cartdim_get(comm, NULL));
  REFUSED(MPI_Cart_get(comm, 1, NULL, &value, &other));
  REFUSED(MPI_Cart_get(comm, 1, &value, NULL, &other));
  REFUSED(MPI_Cart_get(comm, 1, &value, &other, NULL));
  REFUSED(MPI_Cart_coords(comm, 0, 1, NULL));
  REFUSED(MPI_Cart_rank(comm, NULL, &value));
  REFUSED(MPI_Cart_rank(comm, &zero, NULL));
  REFUSED(MPI_Cart_shift(comm, 0, 1, NULL, &value));
  REFUSED(MPI_Cart_shift(comm, 0, 1, &value, NULL));
  REFUSED(MPI_Cart_sub(comm, NULL, &comm));
  REFUSED(MPI_Cart_sub(comm, &one, NULL));
  MPI_Comm_free(&comm);
  REFUSED(MPI_Graph_create(world, 1, NULL, &zero, 0, &comm));
  REFUSED(MPI_Graph_create(world, 1, &one, NULL, 0, &comm));
  REFUSED(MPI_Graph_create(world, 1, &one, &zero, 0, NULL));
  REFUSED(MPI_Graph_map(world, 1, NULL, &zero, &value));
  REFUSED(MPI_Graph_map(world, 1, &one, NULL, &value));
  REFUSED(MPI_Graph_map(world, 1, &one, &zero, NULL));
  MPI_Graph_create(world, 1, &one, &zero, 0, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  REFUSED(MPI_Graphdims_get(comm, NULL, &value));
  REFUSED(MPI_Graphdims_get(comm, &value, NULL));
  REFUSED(MPI_Graph_get(comm, 1, 1, NULL, &value));
  REFUSED(MPI_Graph_get(comm, 1, 1, &value, NULL));
  REFUSED(MPI_Graph_neighbors(comm, 0, 1, NULL));
  REFUSED(MPI_Graph_neighbors_count(comm, 0, NULL));
  MPI_Comm_free(&comm);
}

static void distributed_graphs(void) {
  const MPI_Comm world = MPI_COMM_WORLD;
  const MPI_Info none = MPI_INFO_NULL;
  MPI_Comm comm;
  REFUSED(MPI_Dist_graph_create(world, 1, NULL, &one, &zero, &one, none, 0, &comm));
  REFUSED(MPI_Dist_graph_create(world, 1, &zero, NULL, &zero, &one, none, 0, &comm));
  REFUSED(MPI_Dist_graph_create(world, 1, &zero, &one, NULL, &one, none, 0, &comm));
  REFUSED(MPI_Dist_graph_create(world, 1, &zero, &one, &zero, NULL, none, 0, &comm));
  REFUSED(MPI_Dist_graph_create(world, 1, &zero, &one, &zero, &one, none, 0, NULL));
  REFUSED(MPI_Dist_graph_create_adjacent(world, 1, NULL, &one, 1, &zero, &one, none, 0, &comm));
  REFUSED(MPI_Dist_graph_create_adjacent(world, 1, &zero, NULL, 1, &zero, &one, none, 0, &comm));
  REFUSED(MPI_Dist_graph_create_adjacent(world, 1, &zero, &one, 1, NULL, &one, none, 0, &comm));
  REFUSED(MPI_Dist_graph_create_adjacent(world, 1, &zero, &one, 1, &zero, NULL, none, 0, &comm));
  REFUSED(MPI_Dist_graph_create_adjacent(world, 1, &zero, &one, 1, &zero, &one, none, 0, NULL));
  MPI_Dist_graph_create_adjacent(world, 1, &zero, &one, 1, &zero, &one, none, 0, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  REFUSED(MPI_Dist_graph_neighbors_count(comm, NULL, &value, &other));
  REFUSED(MPI_Dist_graph_neighbors_count(comm, &value, NULL, &other));
  REFUSED(MPI_Dist_graph_neighbors_count(comm, &value, &other, NULL));
  REFUSED(MPI_Dist_graph_neighbors(comm, 1, NULL, &value, 1, &other, ints));
  REFUSED(MPI_Dist_graph_neighbors(comm, 1, &value, NULL, 1, &other, ints));
  REFUSED(MPI_Dist_graph_neighbors(comm, 1, &value, &other, 1, NULL, ints));
  REFUSED(MPI_Dist_graph_neighbors(comm, 1, &value, &other, 1, ints, NULL));
  MPI_Comm_free(&comm);
}

/* Collectives of neighbours: arrays with an entry for each neighbour, and requests. */
static void neighbors(void) {
  const MPI_Datatype type = MPI_INT;
  const MPI_Aint at = 0;
  MPI_Comm comm;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &zero, &one, 1, &zero, &one, MPI_INFO_NULL, 0, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  REFUSED(MPI_Neighbor_allgatherv(&value, 1, type, &other, NULL, &zero, type, comm));
  REFUSED(MPI_Neighbor_allgatherv(&value, 1, type, &other, &one, NULL, type, comm));
  REFUSED(MPI_Neighbor_alltoallv(&value, NULL, &zero, type, &other, &one, &zero, type, comm));
  REFUSED(MPI_Neighbor_alltoallv(&value, &one, NULL, type, &other, &one, &zero, type, comm));
  REFUSED(MPI_Neighbor_alltoallv(&value, &one, &zero, type, &other, NULL, &zero, type, comm));
  REFUSED(MPI_Neighbor_alltoallv(&value, &one, &zero, type, &other, &one, NULL, type, comm));
  REFUSED(MPI_Neighbor_alltoallw(&value, NULL, &at, &type, &other, &one, &at, &type, comm));
  REFUSED(MPI_Neighbor_alltoallw(&value, &one, NULL, &type, &other, &one, &at, &type, comm));
  REFUSED(MPI_Neighbor_alltoallw(&value, &one, &at, NULL, &other, &one, &at, &type, comm));
  REFUSED(MPI_Neighbor_alltoallw(&value, &one, &at, &type, &other, NULL, &at, &type, comm));
  REFUSED(MPI_Neighbor_alltoallw(&value, &one, &at, &type, &other, &one, NULL, &type, comm));
  REFUSED(MPI_Neighbor_alltoallw(&value, &one, &at, &type, &other, &one, &at, NULL, comm));
  REFUSED(MPI_Ineighbor_allgather(&value, 1, type, &other, 1, type, comm, NULL));
  REFUSED(MPI_Ineighbor_allgatherv(&value, 1, type, &other, &one, &zero, type, comm, NULL));
  REFUSED(MPI_Ineighbor_alltoall(&value, 1, type, &other, 1, type, comm, NULL));
  REFUSED(MPI_Ineighbor_alltoallv(&value, &one, &zero, type, &other, &one, &zero, type, comm, NULL));
  REFUSED(MPI_Ineighbor_alltoallw(&value, &one, &at, &type, &other, &one, &at, &type, comm, NULL));
  MPI_Comm_free(&comm);
}

static void types(void) {
  MPI_Datatype type;
  const MPI_Datatype element = MPI_INT;
  const MPI_Aint start_at = 0;
  REFUSED(MPI_Type_contiguous(1, MPI_INT, NULL));
  REFUSED(MPI_Type_vector(1, 1, 1, MPI_INT, NULL));
  REFUSED(MPI_Type_create_hvector(1, 1, 4, MPI_INT, NULL));
  REFUSED(MPI_Type_indexed(1, NULL, &zero, MPI_INT, &type));
  REFUSED(MPI_Type_indexed(1, &one, NULL, MPI_INT, &type));
  REFUSED(MPI_Type_indexed(1, &one, &zero, MPI_INT, NULL));
  REFUSED(MPI_Type_create_hindexed(1, NULL, &start_at, MPI_INT, &type));
  REFUSED(MPI_Type_create_hindexed(1, &one, NULL, MPI_INT, &type));
  REFUSED(MPI_Type_create_hindexed(1, &one, &start_at, MPI_INT, NULL));
  REFUSED(MPI_Type_create_indexed_block(1, 1, NULL, MPI_INT, &type));
  REFUSED(MPI_Type_create_indexed_block(1, 1, &zero, MPI_INT, NULL));
  REFUSED(MPI_Type_create_hindexed_block(1, 1, NULL, MPI_INT, &type));
  REFUSED(MPI_Type_create_hindexed_block(1, 1, &start_at, MPI_INT, NULL));
  REFUSED(MPI_Type_create_subarray(1, NULL, &one, &zero, MPI_ORDER_C, MPI_INT, &type));
  REFUSED(MPI_Type_create_subarray(1, &one, NULL, &zero, MPI_ORDER_C, MPI_INT, &type));
  REFUSED(MPI_Type_create_subarray(1, &one, &one, NULL, MPI_ORDER_C, MPI_INT, &type));
  REFUSED(MPI_Type_create_subarray(1, &one, &one, &zero, MPI_ORDER_C, MPI_INT, NULL));
  REFUSED(MPI_Type_create_struct(1, NULL, &start_at, &element, &type));
  REFUSED(MPI_Type_create_struct(1, &one, NULL, &element, &type));
  REFUSED(MPI_Type_create_struct(1, &one, &start_at, NULL, &type));
  REFUSED(MPI_Type_create_struct(1, &one, &start_at, &element, NULL));
  REFUSED(MPI_Type_create_resized(MPI_INT, 0, 8, NULL));
  REFUSED(MPI_Type_dup(MPI_INT, NULL));
  REFUSED(MPI_Type_commit(NULL));
  REFUSED(MPI_Type_free(NULL));
  REFUSED(MPI_Type_size(MPI_INT, NULL));
  REFUSED(MPI_Type_get_extent(MPI_INT, NULL, &address));
  REFUSED(MPI_Type_get_extent(MPI_INT, &address, NULL));
  REFUSED(MPI_Type_get_true_extent(MPI_INT, NULL, &address));
  REFUSED(MPI_Type_get_true_extent(MPI_INT, &address, NULL));
  REFUSED(MPI_Type_get_envelope(MPI_INT, NULL, ints, ints, ints));
  REFUSED(MPI_Type_get_envelope(MPI_INT, ints, NULL, ints, ints));
  REFUSED(MPI_Type_get_envelope(MPI_INT, ints, ints, NULL, ints));
  REFUSED(MPI_Type_get_envelope(MPI_INT, ints, ints, ints, NULL));
  MPI_Type_create_hindexed(1, &one, &start_at, MPI_INT, &type);
  MPI_Datatype found;
  REFUSED(MPI_Type_get_contents(type, 4, 1, 1, NULL, &address, &found));
  REFUSED(MPI_Type_get_contents(type, 4, 1, 1, ints, NULL, &found));
  REFUSED(MPI_Type_get_contents(type, 4, 1, 1, ints, &address, NULL));
  MPI_Type_free(&type);
  REFUSED(MPI_Type_get_name(MPI_INT, NULL, &value));
  REFUSED(MPI_Type_get_name(MPI_INT, text, NULL));
  REFUSED(MPI_Type_set_name(MPI_INT, NULL));
  int position = 0;
  REFUSED(MPI_Pack(&value, 1, MPI_INT, NULL, 8, &position, MPI_COMM_WORLD));
  REFUSED(MPI_Pack(&value, 1, MPI_INT, text, 8, NULL, MPI_COMM_WORLD));
  REFUSED(MPI_Unpack(NULL, 8, &position, &value, 1, MPI_INT, MPI_COMM_WORLD));
  REFUSED(MPI_Unpack(text, 8, NULL, &value, 1, MPI_INT, MPI_COMM_WORLD));
  REFUSED(MPI_Pack_size(1, MPI_INT, MPI_COMM_WORLD, NULL));
  MPI_Aint place = 0;
  REFUSED(MPI_Pack_external(NULL, &value, 1, MPI_INT, text, 8, &place));
  REFUSED(MPI_Pack_external("external32", &value, 1, MPI_INT, NULL, 8, &place));
  REFUSED(MPI_Pack_external("external32", &value, 1, MPI_INT, text, 8, NULL));
  REFUSED(MPI_Unpack_external(NULL, text, 8, &place, &value, 1, MPI_INT));
  REFUSED(MPI_Unpack_external("external32", NULL, 8, &place, &value, 1, MPI_INT));
  REFUSED(MPI_Unpack_external("external32", text, 8, NULL, &value, 1, MPI_INT));
  REFUSED(MPI_Pack_external_size(NULL, 1, MPI_INT, &place));
  REFUSED(MPI_Pack_external_size("external32", 1, MPI_INT, NULL));
}

static void more_types(void) {
  MPI_Datatype type;
  const MPI_Datatype element = MPI_INT;
  const MPI_Aint start_at = 0;
  MPI_Count counts[4];
  const int kind = MPI_DISTRIBUTE_BLOCK, usual = MPI_DISTRIBUTE_DFLT_DARG, c = MPI_ORDER_C;
  REFUSED(MPI_Type_create_darray(1, 0, 1, NULL, &kind, &usual, &one, c, MPI_INT, &type));
  REFUSED(MPI_Type_create_darray(1, 0, 1, &one, NULL, &usual, &one, c, MPI_INT, &type));
  REFUSED(MPI_Type_create_darray(1, 0, 1, &one, &kind, NULL, &one, c, MPI_INT, &type));
  REFUSED(MPI_Type_create_darray(1, 0, 1, &one, &kind, &usual, NULL, c, MPI_INT, &type));
  REFUSED(MPI_Type_create_darray(1, 0, 1, &one, &kind, &usual, &one, c, MPI_INT, NULL));
  REFUSED(MPI_Type_create_f90_integer(5, NULL));
  REFUSED(MPI_Type_create_f90_real(5, 5, NULL));
  REFUSED(MPI_Type_create_f90_complex(5, 5, NULL));
  REFUSED(MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, NULL));
  REFUSED(MPI_Type_get_value_index(MPI_INT, MPI_INT, NULL));
  REFUSED(MPI_Type_size_x(MPI_INT, NULL));
  REFUSED(MPI_Type_get_extent_x(MPI_INT, NULL, counts));
  REFUSED(MPI_Type_get_extent_x(MPI_INT, counts, NULL));
  REFUSED(MPI_Type_get_true_extent_x(MPI_INT, NULL, counts));
  REFUSED(MPI_Type_get_true_extent_x(MPI_INT, counts, NULL));
  REFUSED(MPI_Type_get_envelope_c(MPI_INT, NULL, counts, counts, counts, ints));
  REFUSED(MPI_Type_get_envelope_c(MPI_INT, counts, NULL, counts, counts, ints));
  REFUSED(MPI_Type_get_envelope_c(MPI_INT, counts, counts, NULL, counts, ints));
  REFUSED(MPI_Type_get_envelope_c(MPI_INT, counts, counts, counts, NULL, ints));
  REFUSED(MPI_Type_get_envelope_c(MPI_INT, counts, counts, counts, counts, NULL));
  MPI_Datatype found;
  MPI_Type_create_hindexed(1, &one, &start_at, MPI_INT, &type);
  REFUSED(MPI_Type_get_contents_c(type, 4, 1, 4, 1, NULL, &address, counts, &found));
  REFUSED(MPI_Type_get_contents_c(type, 4, 1, 4, 1, ints, NULL, counts, &found));
  REFUSED(MPI_Type_get_contents_c(type, 4, 1, 4, 1, ints, &address, counts, NULL));
  MPI_Type_free(&type);
  MPI_Type_contiguous_c(1, MPI_INT, &type);
  REFUSED(MPI_Type_get_contents_c(type, 4, 1, 4, 1, ints, &address, NULL, &found));
  MPI_Type_free(&type);
  REFUSED(MPI_Address(&value, NULL));
  REFUSED(MPI_Type_extent(MPI_INT, NULL));
  REFUSED(MPI_Type_lb(MPI_INT, NULL));
  REFUSED(MPI_Type_ub(MPI_INT, NULL));
  REFUSED(MPI_Type_struct(1, NULL, &start_at, &element, &type));
  REFUSED(MPI_Type_struct(1, &one, NULL, &element, &type));
  REFUSED(MPI_Type_struct(1, &one, &start_at, NULL, &type));
  REFUSED(MPI_Type_struct(1, &one, &start_at, &element, NULL));
  REFUSED(MPI_Type_hvector(1, 1, 4, MPI_INT, NULL));
  REFUSED(MPI_Type_hindexed(1, NULL, &start_at, MPI_INT, &type));
  REFUSED(MPI_Type_hindexed(1, &one, NULL, MPI_INT, &type));
  REFUSED(MPI_Type_hindexed(1, &one, &start_at, MPI_INT, NULL));
}

static void sum(void *in, void *inout, int *count, MPI_Datatype *type) {
  (void)in, (void)inout, (void)count, (void)type;
}

static void operators(void) {
  MPI_Op op;
  REFUSED(MPI_Op_create(NULL, 1, &op));
  REFUSED(MPI_Op_create(sum, 1, NULL));
  REFUSED(MPI_Op_free(NULL));
  REFUSED(MPI_Op_commutative(MPI_SUM, NULL));
  REFUSED(MPI_Reduce_local(NULL, &value, 1, MPI_INT, MPI_SUM));
  REFUSED(MPI_Reduce_local(&value, NULL, 1, MPI_INT, MPI_SUM));
}

static void infos(void) {
  MPI_Info info;
  REFUSED(MPI_Info_create(NULL));
  REFUSED(MPI_Info_create_env(0, NULL, NULL));
  MPI_Info_create(&info);
  REFUSED(MPI_Info_dup(info, NULL));
  REFUSED(MPI_Info_free(NULL));
  REFUSED(MPI_Info_set(info, NULL, "value"));
  REFUSED(MPI_Info_set(info, "key", NULL));
  REFUSED(MPI_Info_delete(info, NULL));
  REFUSED(MPI_Info_get(info, NULL, 1, text, &value));
  REFUSED(MPI_Info_get(info, "key", 1, NULL, &value));
  REFUSED(MPI_Info_get(info, "key", 1, text, NULL));
  REFUSED(MPI_Info_get_string(info, NULL, &value, text, &other));
  REFUSED(MPI_Info_get_string(info, "key", NULL, text, &other));
  REFUSED(MPI_Info_get_string(info, "key", &value, text, NULL));
  REFUSED(MPI_Info_get_valuelen(info, NULL, &value, &other));
  REFUSED(MPI_Info_get_valuelen(info, "key", NULL, &other));
  REFUSED(MPI_Info_get_valuelen(info, "key", &value, NULL));
  REFUSED(MPI_Info_get_nkeys(info, NULL));
  REFUSED(MPI_Info_get_nthkey(info, 0, NULL));
  MPI_Info_free(&info);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  environment();
  attributes();
  communicators();
  sessions();
  messages();
  persistent_messages();
  other_modes();
  kept_requests();
  fields_of_statuses();
  requests_of_collectives();
  arrays_of_collectives();
  grids_and_graphs();
  distributed_graphs();
  neighbors();
  types();
  more_types();
  operators();
  infos();
  return finish();
}
