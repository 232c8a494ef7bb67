/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A small job of a bit of everything, which checks its data. Two ranks.
 *
 * Exit: 0 all was right; 12 a call or a request reported an error, which is printed, and the job is aborted; 99 wrong
 * data.
 *
 * Run by memory_test.py. The main thread, and the library's. Both ranks send before they receive, so that messages of
 * all kinds are also stored as unexpected.
 */
#include <canele/canele.h>
#include <canele/collectives.h>
#include <canele/job.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { lengths_count = 9, handled = 7 };
static const size_t lengths[lengths_count] = {0, 8, 100, 300, 4000, 16000, 40000, 200000, 700000};
static char sent[lengths_count][700000], received[lengths_count][700000];

static canele_engine_t *engine;
static canele_session_t *session;
static int rank, other, arrivals, lost;

static void expect(int code, const char *call) {
  if (code == CANELE_OK) return;
  fprintf(stderr, "told: %s: %s (%s)\n", call, canele_error_string(code), canele_error_detail());
  if (engine != NULL) canele_abort(engine, 12, call);
  exit(12);
}

static void check(int right, const char *what) {
  if (right) return;
  fprintf(stderr, "WRONG: %s\n", what);
  if (engine != NULL) canele_abort(engine, 99, what);
  exit(99);
}

static char mark(int from, int number, int round) { return (char)(from * 7 + number * 3 + round); }

static void send_all(canele_request_t *sends, int round) {
  const canele_send_options_t synchronous = {sizeof synchronous, 0, CANELE_SEND_SYNCHRONOUS, 0};
  for (int i = 0; i < lengths_count; i++) {
    memset(sent[i], mark(rank, i, round), lengths[i]);
    const canele_data_t data = canele_data_contiguous(sent[i], lengths[i]);
    expect(canele_isend_data(session, other, (uint64_t)i, &data, i % 3 == 2 ? &synchronous : NULL, &sends[i]), "isend");
  }
}

static void receive_all(canele_request_t *receives, int round) {
  for (int i = 0; i < lengths_count; i++) {
    memset(received[i], 0, lengths[i]);
    const int source = i % 2 == 0 ? other : CANELE_ANY_SOURCE;
    const uint64_t mask = i % 4 == 3 && round % 2 == 0 ? ~UINT64_C(0) << 60 | 15 : CANELE_TAG_EXACT;
    expect(canele_irecv(session, source, (uint64_t)i, mask, received[i], lengths[i], &receives[i]), "irecv");
  }
}

static void exchange(int round) {
  static canele_request_t requests[2 * lengths_count];
  canele_request_t *all[2 * lengths_count];
  for (int i = 0; i < 2 * lengths_count; i++) all[i] = &requests[i];
  if (round % 2 == 0) send_all(requests, round);
  if (round % 2 == 1) receive_all(requests + lengths_count, round);
  expect(canele_barrier(session), "barrier");
  if (round % 2 == 0) receive_all(requests + lengths_count, round);
  if (round % 2 == 1) send_all(requests, round);
  expect(canele_wait_all(2 * lengths_count, all, NULL), "wait_all");
  for (int i = 0; i < lengths_count; i++)
    for (size_t at = 0; at < lengths[i]; at++) check(received[i][at] == mark(other, i, round), "exchange");
}

static void find_by_probe(void) {
  canele_request_t send = {0}, receive = {0};
  canele_status_t status;
  int found = 0;
  char byte = 'p', got = 0;
  expect(canele_isend(session, other, 100, &byte, 1, &send), "isend");
  while (!found)
    expect(canele_improbe(session, CANELE_ANY_SOURCE, 100, CANELE_TAG_EXACT, &found, &receive, &status), "improbe");
  const canele_data_t data = canele_data_contiguous(&got, 1);
  expect(canele_receive_bind(&receive, &data), "bind");
  expect(canele_wait(&receive, NULL), "wait");
  expect(canele_wait(&send, NULL), "wait");
  check(got == 'p', "probe");
}

static void multicast(void) {
  canele_request_t send = {0}, receive = {0};
  canele_request_t *both[] = {&send, &receive};
  const canele_data_t data = canele_data_contiguous(sent[7], lengths[7]);
  memset(received[7], 0, lengths[7]);
  expect(canele_imulticast(session, &other, 1, 200, &data, NULL, &send), "imulticast");
  expect(canele_irecv(session, other, 200, CANELE_TAG_EXACT, received[7], lengths[7], &receive), "irecv");
  expect(canele_wait_all(2, both, NULL), "wait_all");
  for (size_t at = 0; at < lengths[7]; at++) check(received[7][at] == mark(other, 7, 3), "multicast");
}

static void arrived(const canele_am_message_t *message, void *argument) {
  (void)argument;
  check(message->error != CANELE_OK || message->payload_length == lengths[4], "active message");
  if (message->error != CANELE_OK) lost = message->error;
  __atomic_fetch_add(&arrivals, 1, __ATOMIC_RELEASE);
}

static void activate(void) {
  static canele_am_t messages[handled];
  const canele_am_handler_t handler = {sizeof handler, arrived, NULL, NULL};
  const canele_data_t payload = canele_data_contiguous(sent[4], lengths[4]);
  expect(canele_am_register(session, 5, &handler), "am_register");
  for (int i = 0; i < handled; i++)
    expect(canele_am_send(session, other, 5, "head", 4, &payload, NULL, &messages[i]), "am_send");
  for (int i = 0; i < handled; i++) expect(canele_wait(&messages[i].request, NULL), "wait");
  while (__atomic_load_n(&arrivals, __ATOMIC_ACQUIRE) < handled) canele_progress(engine);
  expect(lost, "active message");
  expect(canele_barrier(session), "barrier");
  expect(canele_am_unregister(session, 5), "am_unregister");
}

static void reduce(void) {
  canele_group_t *group;
  canele_operator_t sum;
  canele_request_t request = {0};
  static int in[5000], out[5000];
  for (int i = 0; i < 5000; i++) in[i] = rank + i;
  expect(canele_group_create(engine, "pair", NULL, 0, &group), "group_create");
  expect(canele_operator_of(CANELE_SUM, CANELE_INT32, &sum), "operator_of");
  expect(canele_iallreduce(group, in, out, 5000, &sum, NULL, &request), "iallreduce");
  expect(canele_wait(&request, NULL), "wait");
  for (int i = 0; i < 5000; i++) check(out[i] == 2 * i + 1, "allreduce");
  expect(canele_group_destroy(group), "group_destroy");
}

static void publish(void) {
  static char value[50000];
  for (int turn = 0; turn < 2; turn++) {
    size_t size = sizeof value;
    expect(canele_publish(engine, turn == 0 ? "first" : "second", sent[7] + turn, sizeof value), "publish");
    expect(canele_exchange(engine, UINT64_MAX), "exchange");
    expect(canele_lookup(engine, other, turn == 0 ? "first" : "second", value, &size), "lookup");
    check(size == sizeof value, "size of a value");
    for (size_t at = 0; at < size; at++) check(value[at] == mark(other, 7, 3), "value");
  }
}

int main(void) {
  const int code = canele_init(NULL, &engine);
  if (code != CANELE_OK) engine = NULL;
  expect(code, "init");
  rank = canele_rank(engine);
  other = 1 - rank;
  expect(canele_session_open(engine, "memory", CANELE_ORDER_PER_TAG, &session), "session_open");
  for (int round = 0; round < 4; round++) exchange(round);
  find_by_probe();
  multicast();
  activate();
  reduce();
  publish();
  expect(canele_session_close(session), "session_close");
  canele_engine_t *const last = engine;
  engine = NULL; /* it does not exist after the next call, whatever that returns */
  expect(canele_finalize(last), "finalize");
  return 0;
}
