/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mpi_common.h - shared by the programs here: parsing a number of the command line, pinning to a core, the time.
 *
 * Included by the programs mpi_*.c here, with _GNU_SOURCE defined before any other include. pin() pins the thread that
 * calls it. A malformed number ends the program by its own usage().
 */
#ifndef CANELE_PEERS_MPI_COMMON_H
#define CANELE_PEERS_MPI_COMMON_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Parses a number. usage() prints what is expected, and ends the program. */
static inline int number(const char *text, int least, void (*usage)(void)) {
  char *end;
  errno = 0;
  const long value = strtol(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0' || value < least || value > 1 << 30) usage();
  return (int)value;
}

static inline void pin(const char *program, int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  if (sched_setaffinity(0, sizeof set, &set) == 0) return;
  fprintf(stderr, "%s: cannot pin to core %d: %s\n", program, core, strerror(errno));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static inline double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

#endif
