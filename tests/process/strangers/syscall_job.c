/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A small job of a bit of everything, which checks its data: messages of 0 bytes to 2 MB both ways, and one that finds
 * its receiver asleep.
 *
 * Exit: 0 all was right; 3 a call reported an error; 99 wrong data. Run by syscall_sweep.py, two ranks. One thread.
 * After the first error a rank finalizes and leaves; the other rank must not wait for it for ever.
 */
#include <canele/canele.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { count = 9 };
static const size_t lengths[count] = {0, 8, 60, 200, 4000, 20000, 70000, 600000, 2000000};
static int told;

static int fine(int code, const char *call) {
  if (code == CANELE_OK) return 1;
  fprintf(stderr, "%s: %s (%s)\n", call, canele_error_string(code), canele_error_detail());
  told = 1;
  return 0;
}

static unsigned char byte_of(int rank, int message, size_t at) {
  return (unsigned char)(rank * 31 + message * 7 + (int)(at % 251));
}

static void exchange(canele_session_t *session, int me) {
  static canele_request_t requests[2 * count];
  canele_request_t *posted[2 * count] = {NULL};
  canele_status_t statuses[2 * count];
  unsigned char *out[count], *in[count];
  memset(requests, 0, sizeof requests);
  for (int i = 0; i < count; i++) {
    out[i] = malloc(lengths[i] + 1);
    in[i] = calloc(1, lengths[i] + 1);
    if (out[i] == NULL || in[i] == NULL) abort();
    for (size_t at = 0; at < lengths[i]; at++) out[i][at] = byte_of(me, i, at);
    canele_request_t *receive = &requests[2 * i], *send = &requests[2 * i + 1];
    if (fine(canele_irecv(session, 1 - me, (uint64_t)i, CANELE_TAG_EXACT, in[i], lengths[i], receive), "irecv"))
      posted[2 * i] = receive;
    if (fine(canele_isend(session, 1 - me, (uint64_t)i, out[i], lengths[i], send), "isend")) posted[2 * i + 1] = send;
  }
  fine(canele_wait_all(2 * count, posted, statuses), "wait_all");
  for (int i = 0; i < count; i++) {
    for (size_t at = 0; posted[2 * i] != NULL && statuses[2 * i].error == CANELE_OK && at < lengths[i]; at++) {
      if (in[i][at] == byte_of(1 - me, i, at)) continue;
      fprintf(stderr, "WRONG DATA in message %d at %zu\n", i, at);
      exit(99);
    }
    free(out[i]), free(in[i]);
  }
}

/* Rank 0 stays away for a moment, so that rank 1 sleeps when its message comes. */
static void wake_up(canele_session_t *session, int me) {
  char word[8] = "wake up";
  canele_request_t request = {0};
  const struct timespec moment = {0, 20000000};
  if (me == 0) nanosleep(&moment, NULL);
  const int code = me == 0 ? canele_isend(session, 1, 100, word, sizeof word, &request)
                           : canele_irecv(session, 0, 100, CANELE_TAG_EXACT, word, sizeof word, &request);
  if (fine(code, "post")) fine(canele_wait(&request, NULL), "wait");
}

int main(void) {
  canele_engine_t *engine;
  canele_session_t *session;
  if (!fine(canele_init(NULL, &engine), "init")) return 3;
  const int me = canele_rank(engine);
  if (fine(canele_session_open(engine, "sweep", 0, &session), "session_open")) {
    exchange(session, me);
    if (!told) wake_up(session, me);
    if (!told) exchange(session, me);
    if (!told) fine(canele_barrier(session), "barrier");
    fine(canele_session_close(session), "session_close");
  }
  fine(canele_finalize(engine), "finalize");
  return told ? 3 : 0;
}
