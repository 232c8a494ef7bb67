/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Start, end, time and names. Run with any number of processes, also alone without a launcher.
 */
#include "check.h"

#if MPI_VERSION >= 4 || defined(CANELE_MPI)
static int info_has(MPI_Info info, const char *key, const char *expected) {
  char value[MPI_MAX_INFO_VAL + 1] = "";
  int flag = 0, length = (int)sizeof value;
  MPI_Info_get_string(info, key, &length, value, &flag);
  return flag && (expected == NULL || strcmp(value, expected) == 0);
}

/* Infos work at any time. */
static void infos(int argc, char **argv) {
  MPI_Info info;
  char number[16];
  char *arguments[] = {argv[0], "first", "second", NULL};
  MPI_Info_create_env(3, arguments, &info);
  MPI_Info_set(info, "key", "value"); /* the program's own */
  CHECK(info_has(info, "key", "value"));
#ifdef CANELE_MPI
  CHECK(info_has(info, "command", argv[0]) && info_has(info, "argv", "first second"));
  CHECK(info_has(MPI_INFO_ENV, "command", argv[0]) && info_has(MPI_INFO_ENV, "wdir", NULL));
  CHECK(argc < 2 || info_has(MPI_INFO_ENV, "argv", argv[1]));
  snprintf(number, sizeof number, "%d", size_);
  int running, ended;
  MPI_Initialized(&running);
  MPI_Finalized(&ended);
  if (running && !ended) CHECK(info_has(MPI_INFO_ENV, "maxprocs", number));
#else
  (void)argc, (void)number;
#endif
  MPI_Info_free(&info);
  MPI_Info_create_env(0, NULL, &info);
  MPI_Info_free(&info);
}
#else
static void infos(int argc, char **argv) { (void)argc, (void)argv; }
#endif

#ifdef CANELE_MPI
static void hardware(void) {
  MPI_Info info, changed = MPI_INFO_ENV;
  int count = -1;
  MPI_Get_hw_resource_info(&info);
  MPI_Info_get_nkeys(info, &count);
  CHECK(count >= 0);
  MPI_Info_free(&info);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK_EQ(MPI_Info_set(MPI_INFO_ENV, "key", "value"), MPI_ERR_INFO);
  CHECK_EQ(MPI_Info_delete(MPI_INFO_ENV, "command"), MPI_ERR_INFO);
  CHECK_EQ(MPI_Info_free(&changed), MPI_ERR_INFO);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}
#else
static void hardware(void) {}
#endif

int main(int argc, char **argv) {
  int flag = 1, version, subversion, length, level = -1;
  char text[MPI_MAX_LIBRARY_VERSION_STRING > MPI_MAX_PROCESSOR_NAME ? MPI_MAX_LIBRARY_VERSION_STRING
                                                                    : MPI_MAX_PROCESSOR_NAME];
  MPI_Initialized(&flag);
  CHECK(!flag);
  MPI_Finalized(&flag);
  CHECK(!flag);
  MPI_Get_version(&version, &subversion);
  CHECK(version == MPI_VERSION && subversion == MPI_SUBVERSION);
  MPI_Get_library_version(text, &length);
  CHECK(length > 0);
  infos(argc, argv);
  start(&argc, &argv);
  infos(argc, argv);
  hardware();
  CHECK_EQ(MPI_Pcontrol(1), MPI_SUCCESS);
  CHECK_EQ(MPI_Pcontrol(2, "a tool's argument", 3.5), MPI_SUCCESS);
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
  infos(argc, argv);
  MPI_Initialized(&flag);
  MPI_Finalized(&level);
  return flag && level ? 0 : 1;
}
