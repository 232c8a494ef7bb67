/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sessions with fresh labels are opened, used and closed, one at a time, far more often than there are numbers: none
 * fails, and memory stays where it was. Ranks that lag find their messages.
 *
 * Run by ctest, under canele-run: process_strangers_churn [TIMES]. By hand: a million. One thread in each rank. Memory
 * is that of the heap (mallinfo2), after the first hundredth: a leak of a few bytes in each session shows.
 */
#include <canele/canele.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void must(int right, const char *what) {
  if (right) return;
  fprintf(stderr, "%s: %s\n", what, canele_error_detail());
  exit(1);
}

int main(int argc, char **argv) {
  const long times = argc > 1 ? atol(argv[1]) : 70000, warm = times / 100;
  canele_engine_t *engine;
  size_t before = 0;
  must(canele_init(NULL, &engine) == CANELE_OK, "init");
  const int me = canele_rank(engine), size = canele_size(engine);
  const int to = (me + 1) % size, from = (me + size - 1) % size;
  for (long i = 0; i < times; ++i) {
    char label[32];
    canele_session_t *session;
    canele_request_t send = {0}, receive = {0};
    long out = i, in = -1;
    snprintf(label, sizeof label, "s%ld", i);
    must(canele_session_open(engine, label, 0, &session) == CANELE_OK, "open");
    must(canele_isend(session, to, 1, &out, sizeof out, &send) == CANELE_OK, "isend");
    must(canele_irecv(session, from, 1, CANELE_TAG_EXACT, &in, sizeof in, &receive) == CANELE_OK, "irecv");
    must(canele_wait(&receive, NULL) == CANELE_OK && canele_wait(&send, NULL) == CANELE_OK, "wait");
    must(in == i, "a message of another session");
    must(canele_session_close(session) == CANELE_OK, "close");
    if (i == warm) before = mallinfo2().uordblks;
  }
  const size_t after = mallinfo2().uordblks;
  printf("rank %d: %ld sessions, heap %zu bytes after %ld of them, %zu at the end\n", me, times, before, warm, after);
  must(after < before + (1 << 16), "memory has grown");
  must(canele_finalize(engine) == CANELE_OK, "finalize");
  return 0;
}
