/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nulls.c for persistent collectives and partitioned messages. One thread.
 */
#include "nulls.h"

static void persistent_collectives(void) {
  const MPI_Comm world = MPI_COMM_WORLD;
  const MPI_Info info = MPI_INFO_NULL;
  const MPI_Datatype type = MPI_INT;
  MPI_Request request = MPI_REQUEST_NULL;
  REFUSED(MPI_Allgather_init(&value, 1, MPI_INT, &other, 1, MPI_INT, world, info, NULL));
  REFUSED(MPI_Allgatherv_init(&value, 1, MPI_INT, &other, NULL, &zero, MPI_INT, world, info, &request));
  REFUSED(MPI_Allgatherv_init(&value, 1, MPI_INT, &other, &one, NULL, MPI_INT, world, info, &request));
  REFUSED(MPI_Allgatherv_init(&value, 1, MPI_INT, &other, &one, &zero, MPI_INT, world, info, NULL));
  REFUSED(MPI_Allreduce_init(&value, &other, 1, MPI_INT, MPI_SUM, world, info, NULL));
  REFUSED(MPI_Alltoall_init(&value, 1, MPI_INT, &other, 1, MPI_INT, world, info, NULL));
  REFUSED(MPI_Alltoallv_init(&value, NULL, &zero, MPI_INT, &other, &one, &zero, MPI_INT, world, info, &request));
  REFUSED(MPI_Alltoallv_init(&value, &one, NULL, MPI_INT, &other, &one, &zero, MPI_INT, world, info, &request));
  REFUSED(MPI_Alltoallv_init(&value, &one, &zero, MPI_INT, &other, NULL, &zero, MPI_INT, world, info, &request));
  REFUSED(MPI_Alltoallv_init(&value, &one, &zero, MPI_INT, &other, &one, NULL, MPI_INT, world, info, &request));
  REFUSED(MPI_Alltoallv_init(&value, &one, &zero, MPI_INT, &other, &one, &zero, MPI_INT, world, info, NULL));
  REFUSED(MPI_Alltoallw_init(&value, NULL, &zero, &type, &other, &one, &zero, &type, world, info, &request));
  REFUSED(MPI_Alltoallw_init(&value, &one, NULL, &type, &other, &one, &zero, &type, world, info, &request));
  REFUSED(MPI_Alltoallw_init(&value, &one, &zero, NULL, &other, &one, &zero, &type, world, info, &request));
  REFUSED(MPI_Alltoallw_init(&value, &one, &zero, &type, &other, NULL, &zero, &type, world, info, &request));
  REFUSED(MPI_Alltoallw_init(&value, &one, &zero, &type, &other, &one, NULL, &type, world, info, &request));
  REFUSED(MPI_Alltoallw_init(&value, &one, &zero, &type, &other, &one, &zero, NULL, world, info, &request));
  REFUSED(MPI_Alltoallw_init(&value, &one, &zero, &type, &other, &one, &zero, &type, world, info, NULL));
  REFUSED(MPI_Barrier_init(world, info, NULL));
  REFUSED(MPI_Bcast_init(&other, 1, MPI_INT, 0, world, info, NULL));
  REFUSED(MPI_Exscan_init(&value, &other, 1, MPI_INT, MPI_SUM, world, info, NULL));
  REFUSED(MPI_Gather_init(&value, 1, MPI_INT, &other, 1, MPI_INT, 0, world, info, NULL));
  REFUSED(MPI_Gatherv_init(&value, 1, MPI_INT, &other, NULL, &zero, MPI_INT, 0, world, info, &request));
  REFUSED(MPI_Gatherv_init(&value, 1, MPI_INT, &other, &one, NULL, MPI_INT, 0, world, info, &request));
  REFUSED(MPI_Gatherv_init(&value, 1, MPI_INT, &other, &one, &zero, MPI_INT, 0, world, info, NULL));
  REFUSED(MPI_Reduce_init(&value, &other, 1, MPI_INT, MPI_SUM, 0, world, info, NULL));
  REFUSED(MPI_Reduce_scatter_block_init(&value, &other, 1, MPI_INT, MPI_SUM, world, info, NULL));
  REFUSED(MPI_Reduce_scatter_init(&value, &other, NULL, MPI_INT, MPI_SUM, world, info, &request));
  REFUSED(MPI_Reduce_scatter_init(&value, &other, &one, MPI_INT, MPI_SUM, world, info, NULL));
  REFUSED(MPI_Scan_init(&value, &other, 1, MPI_INT, MPI_SUM, world, info, NULL));
  REFUSED(MPI_Scatter_init(&value, 1, MPI_INT, &other, 1, MPI_INT, 0, world, info, NULL));
  REFUSED(MPI_Scatterv_init(&value, NULL, &zero, MPI_INT, &other, 1, MPI_INT, 0, world, info, &request));
  REFUSED(MPI_Scatterv_init(&value, &one, NULL, MPI_INT, &other, 1, MPI_INT, 0, world, info, &request));
  REFUSED(MPI_Scatterv_init(&value, &one, &zero, MPI_INT, &other, 1, MPI_INT, 0, world, info, NULL));
}

static void persistent_neighbors(void) {
  const MPI_Info info = MPI_INFO_NULL;
  const MPI_Datatype type = MPI_INT;
  const int ends[1] = {1}, edges[1] = {0};
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm ring;
  MPI_Graph_create(MPI_COMM_WORLD, 1, ends, edges, 0, &ring);
  REFUSED(MPI_Neighbor_allgather_init(&value, 1, MPI_INT, &other, 1, MPI_INT, ring, info, NULL));
  REFUSED(MPI_Neighbor_allgatherv_init(&value, 1, MPI_INT, &other, NULL, &zero, MPI_INT, ring, info, &request));
  REFUSED(MPI_Neighbor_allgatherv_init(&value, 1, MPI_INT, &other, &one, NULL, MPI_INT, ring, info, &request));
  REFUSED(MPI_Neighbor_allgatherv_init(&value, 1, MPI_INT, &other, &one, &zero, MPI_INT, ring, info, NULL));
  REFUSED(MPI_Neighbor_alltoall_init(&value, 1, MPI_INT, &other, 1, MPI_INT, ring, info, NULL));
  REFUSED(
      MPI_Neighbor_alltoallv_init(&value, NULL, &zero, MPI_INT, &other, &one, &zero, MPI_INT, ring, info, &request));
  REFUSED(MPI_Neighbor_alltoallv_init(&value, &one, NULL, MPI_INT, &other, &one, &zero, MPI_INT, ring, info, &request));
  REFUSED(
      MPI_Neighbor_alltoallv_init(&value, &one, &zero, MPI_INT, &other, NULL, &zero, MPI_INT, ring, info, &request));
  REFUSED(MPI_Neighbor_alltoallv_init(&value, &one, &zero, MPI_INT, &other, &one, NULL, MPI_INT, ring, info, &request));
  REFUSED(MPI_Neighbor_alltoallv_init(&value, &one, &zero, MPI_INT, &other, &one, &zero, MPI_INT, ring, info, NULL));
  REFUSED(
      MPI_Neighbor_alltoallw_init(&value, NULL, &address, &type, &other, &one, &address, &type, ring, info, &request));
  REFUSED(MPI_Neighbor_alltoallw_init(&value, &one, NULL, &type, &other, &one, &address, &type, ring, info, &request));
  REFUSED(
      MPI_Neighbor_alltoallw_init(&value, &one, &address, NULL, &other, &one, &address, &type, ring, info, &request));
  REFUSED(
      MPI_Neighbor_alltoallw_init(&value, &one, &address, &type, &other, NULL, &address, &type, ring, info, &request));
  REFUSED(MPI_Neighbor_alltoallw_init(&value, &one, &address, &type, &other, &one, NULL, &type, ring, info, &request));
  REFUSED(
      MPI_Neighbor_alltoallw_init(&value, &one, &address, &type, &other, &one, &address, NULL, ring, info, &request));
  REFUSED(MPI_Neighbor_alltoallw_init(&value, &one, &address, &type, &other, &one, &address, &type, ring, info, NULL));
  MPI_Comm_free(&ring);
}

/* Of the header of the ABI's authors only. */
int MPI_Psend_init_c(const void *data, int partitions, MPI_Count count, MPI_Datatype type, int to, int tag,
                     MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Precv_init_c(void *data, int partitions, MPI_Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                     MPI_Info info, MPI_Request *request);

static void partitioned(void) {
  const MPI_Comm world = MPI_COMM_WORLD;
  MPI_Request request;
  REFUSED(MPI_Psend_init(&value, 1, 1, MPI_INT, 0, 0, world, MPI_INFO_NULL, NULL));
  REFUSED(MPI_Precv_init(&value, 1, 1, MPI_INT, 0, 0, world, MPI_INFO_NULL, NULL));
  REFUSED(MPI_Psend_init_c(&value, 1, 1, MPI_INT, 0, 0, world, MPI_INFO_NULL, NULL));
  REFUSED(MPI_Precv_init_c(&value, 1, 1, MPI_INT, 0, 0, world, MPI_INFO_NULL, NULL));
  MPI_Psend_init(&value, 1, 1, MPI_INT, 0, 0, world, MPI_INFO_NULL, &request);
  REFUSED(MPI_Pready_list(1, NULL, request));
  REFUSED(MPI_Parrived(request, 0, NULL));
  MPI_Request_free(&request);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  persistent_collectives();
  persistent_neighbors();
  partitioned();
  (void)text;
  return finish();
}
