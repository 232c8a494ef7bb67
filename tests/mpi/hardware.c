/* SPDX-License-Identifier: BSD-3-Clause
 *
 * MPI_Comm_split_type by hardware and by sets of processes, on one machine; MPI_Get_hw_resource_info. One thread.
 */
#define _GNU_SOURCE
#include <sched.h>

#include "check.h"

static int size_of(MPI_Comm comm) {
  int size;
  MPI_Comm_size(comm, &size);
  return size;
}

/* Splits by what the hints name. Returns the size of the result; 0: MPI_COMM_NULL. Ranks without a type get nothing. */
static int size_by(int type, const char *key, const char *value) {
  MPI_Comm comm;
  MPI_Info info;
  MPI_Info_create(&info);
  if (key != NULL) MPI_Info_set(info, key, value);
  CHECK_EQ(MPI_Comm_split_type(MPI_COMM_WORLD, type, rank_, info, &comm), MPI_SUCCESS);
  MPI_Info_free(&info);
  if (comm == MPI_COMM_NULL) return 0;
  const int size = size_of(comm);
  int mine = 1, sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
  CHECK_EQ(sum, size);
  MPI_Comm_free(&comm);
  return size;
}

/* Binds this process to one processor, before it has threads. Two ranks share a processor, or more if there are few. */
static int bind_to_a_processor(void) {
  const char *rank = getenv("PMI_RANK");
  cpu_set_t allowed, one;
  sched_getaffinity(0, sizeof allowed, &allowed);
  int processor = -1, place = (rank != NULL ? atoi(rank) / 2 : 0) % CPU_COUNT(&allowed);
  while (place >= 0) place -= CPU_ISSET(++processor, &allowed) ? 1 : 0;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  return sched_setaffinity(0, sizeof one, &one) == 0 ? processor : -1;
}

static void split_by_hardware(int processor) {
  const char *key = "mpi_hw_resource_type";
  CHECK_EQ(size_by(MPI_COMM_TYPE_HW_GUIDED, key, "mpi_shared_memory"), size_);
  CHECK_EQ(size_by(MPI_COMM_TYPE_HW_GUIDED, key, "hwloc://Machine"), size_);
  CHECK_EQ(size_by(MPI_COMM_TYPE_HW_GUIDED, key, "a toaster"), 0);
  CHECK_EQ(size_by(MPI_COMM_TYPE_HW_GUIDED, NULL, NULL), 0);
  CHECK_EQ(size_by(MPI_COMM_TYPE_HW_GUIDED, "mpi_pset_name", "mpi://WORLD"), 0);
  CHECK_EQ(size_by(MPI_COMM_TYPE_RESOURCE_GUIDED, key, "hwloc://Machine"), size_);
  CHECK_EQ(size_by(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "mpi://WORLD"), size_);
  CHECK_EQ(size_by(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "mpi://SELF"), 1);
  CHECK_EQ(size_by(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "mpi://NOWHERE"), 0);
  const int type = rank_ == 0 ? MPI_UNDEFINED : MPI_COMM_TYPE_HW_GUIDED;
  CHECK_EQ(size_by(type, key, "hwloc://Machine"), rank_ == 0 ? 0 : size_ - 1);

  int *all = malloc(sizeof *all * (size_t)size_), beside = 0;
  MPI_Allgather(&processor, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < size_; ++i) beside += all[i] == processor;
  free(all);
  CHECK_EQ(size_by(MPI_COMM_TYPE_HW_GUIDED, key, "hwloc://PU"), beside);

  MPI_Comm comm;
  MPI_Info info;
  char value[64];
  int length = sizeof value, found;
  MPI_Info_create(&info);
  CHECK_EQ(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_UNGUIDED, 0, info, &comm), MPI_SUCCESS);
  MPI_Info_get_string(info, key, &length, value, &found);
  CHECK_EQ(comm != MPI_COMM_NULL, beside < size_);
  CHECK_EQ(found, beside < size_);
  if (comm != MPI_COMM_NULL) {
    CHECK(size_of(comm) < size_ && strncmp(value, "hwloc://", 8) == 0);
    CHECK_EQ(size_by(MPI_COMM_TYPE_HW_GUIDED, key, value), size_of(comm));
    MPI_Comm_free(&comm);
  }
  MPI_Info_free(&info);

  MPI_Get_hw_resource_info(&info);
  length = sizeof value;
  MPI_Info_get_string(info, "hwloc://PU", &length, value, &found);
  CHECK(found && strcmp(value, "true") == 0);
  MPI_Info_free(&info);
}

int main(int argc, char **argv) {
  const int processor = bind_to_a_processor();
  start(&argc, &argv);
  CHECK(processor >= 0);
  split_by_hardware(processor);
  return finish();
}
