/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rank 1 discards messages that it never received. Every send of rank 0 must end, with an error if the send was waited
 * for, and canele_finalize of both must return.
 *
 * Run by ctest or by hand, under canele-run with 2 ranks: process_strangers_close HOW. One thread in each rank.
 *
 * HOW "finalize" closes nothing: canele_finalize discards the messages. "closed" closes before any message comes, and
 * never opens again. "held" takes a message by a matched probe, and gives it no buffer.
 */
#include <canele/canele.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LARGE = 300000, BLOCKED = 400, KINDS = 4 };

static void must(int right, const char *what) {
  if (right) return;
  fprintf(stderr, "%s: %s\n", what, canele_error_detail());
  exit(1);
}

/* The messages of rank 0, to `to`: an eager one, a large one, a synchronous one, and a large synchronous one. */
static char bytes[LARGE];
static void send_all(canele_session_t *session, int to, canele_request_t *requests) {
  static const size_t lengths[KINDS] = {100, LARGE, 8, LARGE};
  for (int i = 0; i < KINDS; ++i) {
    canele_send_options_t how = {.struct_size = sizeof how, .flags = i < 2 ? 0 : CANELE_SEND_SYNCHRONOUS};
    const canele_data_t data = canele_data_contiguous(bytes, lengths[i]);
    must(canele_isend_data(session, to, (uint64_t)i, &data, &how, &requests[i]) == CANELE_OK, "isend");
  }
}

static void wait_until_there(canele_session_t *session, int from, uint64_t tag) {
  int found = 0;
  canele_status_t status;
  while (!found) must(canele_iprobe(session, from, tag, CANELE_TAG_EXACT, &found, &status) == CANELE_OK, "iprobe");
}

static void expect_ends(canele_request_t *requests) {
  for (int i = 0; i < KINDS; ++i) {
    canele_status_t status = {0};
    const int code = canele_wait(&requests[i], &status);
    const int wanted = i == 0 ? CANELE_OK : CANELE_ECANCELED;
    if (code == wanted && status.cancelled == 0) continue;
    fprintf(stderr, "send %d ended with %d, cancelled %d; wanted %d\n", i, code, status.cancelled, wanted);
    exit(1);
  }
  must(strstr(canele_error_detail(), "rank") != NULL, "the words name no rank");
}

/* Sends more than rank 1 has memory for: all sends end, the last ones only when rank 1 is finalized. */
static void block_sends(canele_session_t *session, canele_request_t *requests) {
  for (int i = 0; i < BLOCKED; ++i) {
    must(canele_isend(session, 1, 50, bytes, 1000, &requests[i]) == CANELE_OK, "isend");
  }
}

static canele_request_t requests[2 * KINDS], blocked[BLOCKED], probed;

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "close";
  const int close_late = strcmp(how, "close") == 0, close_early = strcmp(how, "closed") == 0;
  const char *settings[] = {"CANELE_UNEXPECTED_MEMORY=128k"};
  const canele_options_t options = {sizeof options, settings, 1};
  canele_engine_t *engine;
  canele_session_t *control, *session;
  alarm(100);
  must(canele_init(&options, &engine) == CANELE_OK, "init");
  must(canele_session_open(engine, "control", 0, &control) == CANELE_OK, "open control");
  must(canele_session_open(engine, "x", 0, &session) == CANELE_OK, "open x");
  const int me = canele_rank(engine);
  if (me == 1 && close_early) must(canele_session_close(session) == CANELE_OK, "close early");
  must(canele_barrier(control) == CANELE_OK, "barrier");
  if (me == 0) {
    send_all(session, 1, requests);
  } else if (!close_early) {
    send_all(session, 1, requests); /* to itself */
    for (uint64_t tag = 0; tag < KINDS; ++tag) {
      wait_until_there(session, 0, tag);
      wait_until_there(session, 1, tag);
    }
    if (strcmp(how, "held") == 0) {
      int found = 0;
      must(canele_improbe(session, 0, 1, CANELE_TAG_EXACT, &found, &probed, NULL) == CANELE_OK && found, "improbe");
    }
    /* Waited-for messages to the own rank are requests of the session: it could not be closed. */
  }
  must(canele_barrier(control) == CANELE_OK, "barrier");
  if (me == 1 && close_late) {
    must(canele_session_close(session) == CANELE_EBUSY, "close with sends to oneself");
    char *into = malloc(LARGE);
    for (int i = 0; i < KINDS; ++i) {
      canele_request_t receive = {0};
      must(canele_irecv(session, 1, (uint64_t)i, CANELE_TAG_EXACT, into, LARGE, &receive) == CANELE_OK, "irecv");
      must(canele_wait(&receive, NULL) == CANELE_OK && canele_wait(&requests[i], NULL) == CANELE_OK, "to itself");
    }
    free(into);
    must(canele_session_close(session) == CANELE_OK, "close");
  }
  if (me == 0 && close_late) {
    expect_ends(requests);
    must(canele_session_close(session) == CANELE_OK, "close of the sender");
  } else if (me == 0) {
    block_sends(session, blocked); /* canele_finalize waits for all of them */
  }
  must(canele_finalize(engine) == CANELE_OK, "finalize");
  if (!close_late && (me == 0 || !close_early)) {
    for (int i = 0; i < KINDS; ++i) {
      canele_status_t status = {0};
      must(canele_request_status(&requests[i], &status) == CANELE_OK, "a send has not ended");
      must(status.error == (i == 0 ? CANELE_OK : CANELE_ECANCELED), "a send has ended otherwise");
    }
  }
  return 0;
}
