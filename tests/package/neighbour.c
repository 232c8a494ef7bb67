/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Open MPI and libcanele in one process, each sending a message of its own: their symbols must not meet.
 * Built by package_test.py with Open MPI's mpicc, linked with both.
 */
#include <canele/canele.h>
#include <mpi.h>
#include <stdio.h>

static int over_canele(canele_engine_t *engine) {
  static canele_request_t send, receive;
  canele_session_t *session;
  int out = 42, in = 0;
  if (canele_session_open(engine, "neighbour", CANELE_ORDER_PER_TAG, &session) != CANELE_OK) return 1;
  canele_irecv(session, canele_rank(engine), 1, CANELE_TAG_EXACT, &in, sizeof in, &receive);
  canele_isend(session, canele_rank(engine), 1, &out, sizeof out, &send);
  if (canele_wait(&receive, NULL) != CANELE_OK || canele_wait(&send, NULL) != CANELE_OK) return 1;
  return canele_session_close(session) != CANELE_OK || in != 42;
}

static int over_mpi(void) {
  int out = 43, in = 0;
  MPI_Sendrecv(&out, 1, MPI_INT, 0, 1, &in, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  return in != 43;
}

int main(int argc, char **argv) {
  canele_engine_t *engine;
  const int code = canele_init(NULL, &engine);
  if (code != CANELE_OK) {
    fprintf(stderr, "canele_init: %s (%s)\n", canele_error_string(code), canele_error_detail());
    return 1;
  }
  MPI_Init(&argc, &argv);
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(version, &length);
  const int bad = over_canele(engine) + 2 * over_mpi();
  MPI_Finalize();
  if (canele_finalize(engine) != CANELE_OK) return 4;
  printf("canele %s beside %.20s: %s\n", canele_version(), version, bad ? "wrong data" : "both right");
  return bad;
}
