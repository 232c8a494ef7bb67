/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Three ranks: 0 and 1 exchange messages, which are checked; rank 2 connects to rank 0 only after `late` milliseconds.
 *
 * Arguments: messages, late. Exit 0: all was right. Run by flood_test.py, under a flood of unauthenticated connections.
 * One thread.
 */
#include <canele/canele.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static canele_session_t *session;

static void must(int code, const char *call) {
  if (code == CANELE_OK) return;
  fprintf(stderr, "%s: %s (%s)\n", call, canele_error_string(code), canele_error_detail());
  exit(3);
}

static void send(int to, long value) {
  canele_request_t request = {0};
  must(canele_isend(session, to, 1, &value, sizeof value, &request), "isend");
  must(canele_wait(&request, NULL), "wait for a send");
}

static long receive(int from) {
  long value = -1;
  canele_request_t request = {0};
  must(canele_irecv(session, from, 1, CANELE_TAG_EXACT, &value, sizeof value, &request), "irecv");
  must(canele_wait(&request, NULL), "wait for a receive");
  return value;
}

int main(int argc, char **argv) {
  const long messages = argc > 1 ? atol(argv[1]) : 1000, late = argc > 2 ? atol(argv[2]) : 500;
  canele_engine_t *engine;
  must(canele_init(NULL, &engine), "init");
  must(canele_session_open(engine, "flood", 0, &session), "session_open");
  const int me = canele_rank(engine);
  for (long i = 0; i < messages && me < 2; i++) {
    if (me == 0) send(1, i);
    if (receive(1 - me) != i) return 99;
    if (me == 1) send(0, i);
  }
  if (me == 2) {
    const struct timespec away = {late / 1000, late % 1000 * 1000000};
    nanosleep(&away, NULL);
    send(0, 42);
  }
  if (me == 0 && receive(2) != 42) return 99;
  must(canele_barrier(session), "barrier");
  must(canele_session_close(session), "session_close");
  must(canele_finalize(engine), "finalize");
  return 0;
}
