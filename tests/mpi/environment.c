/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Start, end, time and names. Run with any number of processes, also alone without a launcher.
 */
#include "check.h"

int main(int argc, char **argv) {
  int flag = 1, version, subversion, length, level = -1;
  char text[MPI_MAX_LIBRARY_VERSION_STRING > MPI_MAX_PROCESSOR_NAME ? MPI_MAX_LIBRARY_VERSION_STRING
                                                                    : MPI_MAX_PROCESSOR_NAME];
  MPI_Initialized(&flag);
  CHECK(!flag);
  MPI_Finalized(&flag);
  CHECK(!flag);
  MPI_Get_version(&version, &subversion);
  CHECK(version >= 3);
  MPI_Get_library_version(text, &length);
  CHECK(length > 0);
  start(&argc, &argv);
  MPI_Initialized(&flag);
  CHECK(flag);
  MPI_Query_thread(&level);
  CHECK_EQ(level, MPI_THREAD_MULTIPLE);
  MPI_Is_thread_main(&flag);
  CHECK(flag);
  CHECK(rank_ >= 0 && rank_ < size_);
  if (argc > 1) CHECK_EQ(size_, atoi(argv[1]));
  MPI_Get_processor_name(text, &length);
  CHECK(length > 0 && (size_t)length == strlen(text));
  CHECK(MPI_Wtick() > 0 && MPI_Wtick() < 1);
  const double before = MPI_Wtime();
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(MPI_Wtime() >= before);
  CHECK_EQ(finish(), 0);
  MPI_Initialized(&flag);
  MPI_Finalized(&level);
  return flag && level ? 0 : 1;
}
