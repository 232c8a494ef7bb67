/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One-sided operations on the memory of a rank that computes and makes no call: the library serves them.
 *
 * Run by CMakeLists.txt in this directory, 3 ranks. Rank 1 owns the memory, and its key goes to rank 0 by way of rank
 * 2, so that the first operation is also the first contact. In each round the target computes until the last operation
 * of the round has changed its memory. Argument: rounds. Prints the times of rank 0, which decide nothing: an operation
 * that is not served ends by the time limit of the test.
 */
#include <canele/one_sided.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { origin = 0, target = 1, relay = 2, block = 4096, kinds = 4 };

/* The target's memory. */
typedef struct {
  uint64_t added, round; /* by rank 0; `round` is the last operation of a round */
  unsigned char bytes[block];
} memory_t;

typedef struct {
  unsigned char key[CANELE_KEY_SIZE];
  uint32_t slot;
} card_t;

static canele_engine_t *engine;
static canele_session_t *session;

static void check(int code, const char *what) {
  if (code == CANELE_OK) return;
  fprintf(stderr, "serve: %s: %s: %s\n", what, canele_error_string(code), canele_error_detail());
  canele_abort(engine, 1, what);
}

static void fail(const char *why) {
  fprintf(stderr, "serve: %s\n", why);
  canele_abort(engine, 1, why);
}

static void send(int to, void *bytes, size_t length) {
  canele_request_t request = {0};
  check(canele_isend(session, to, 1, bytes, length, &request), "send");
  check(canele_wait(&request, NULL), "wait for a send");
}

static void receive(int from, void *bytes, size_t length) {
  canele_request_t request = {0};
  check(canele_irecv(session, from, 1, CANELE_TAG_EXACT, bytes, length, &request), "receive");
  check(canele_wait(&request, NULL), "wait for a receive");
}

/* Computes until the round has ended. It reads memory that a thread of the library writes, which TSan would report. */
__attribute__((noinline, no_sanitize("thread"))) static void compute(const memory_t *memory, uint64_t round) {
  const volatile uint64_t *const last = &memory->round;
  while (*last != round) {
  }
}

static void own(uint64_t rounds) {
  static memory_t memory;
  canele_memory_t *registered;
  canele_queue_t queue = {{0}};
  const canele_completion_t then = {.kind = CANELE_COMPLETE_QUEUE, .object = &queue};
  card_t card;
  check(canele_memory_register(engine, &memory, sizeof memory, NULL, &registered), "register");
  check(canele_memory_key(registered, card.key), "key");
  check(canele_notification_open(engine, &then, &card.slot), "slot");
  send(relay, &card, sizeof card);
  for (uint64_t round = 1; round <= rounds; ++round) {
    compute(&memory, round);
    canele_entry_t entry;
    if (canele_queue_wait(engine, &queue, &entry, 1, UINT64_MAX) != 1 || entry.immediate != round)
      fail("another notification was expected");
    if (memory.bytes[0] != (unsigned char)round || memory.added != round) fail("wrong data in the memory");
    if (round < rounds) send(origin, &round, sizeof round); /* the next round may begin */
  }
  receive(origin, &card, sizeof card);
  check(canele_memory_free(registered), "free");
}

static int by_time(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void access_memory(uint64_t rounds) {
  static unsigned char bytes[block], back[block];
  static const char *const names[kinds] = {"put", "get", "fetch-and-add", "put with notification"};
  double *times[kinds], first[kinds];
  canele_key_t *key;
  card_t card;
  for (int kind = 0; kind < kinds; ++kind)
    if ((times[kind] = calloc(rounds, sizeof **times)) == NULL) fail("no memory");
  receive(relay, &card, sizeof card);
  check(canele_key_open(engine, card.key, &key), "open");
  for (uint64_t round = 1; round <= rounds; ++round) {
    uint64_t before = 0;
    memset(bytes, (int)round, sizeof bytes);
    const canele_data_t out = canele_data_contiguous(bytes, block), in = canele_data_contiguous(back, block);
    const canele_data_t number = canele_data_contiguous(&round, sizeof round);
    canele_access_options_t notify = {.struct_size = sizeof notify, .slot = card.slot, .immediate = round};
    for (int kind = 0; kind < kinds; ++kind) {
      canele_request_t request = {0};
      const uint64_t begin = canele_now(engine);
      if (kind == 0) check(canele_put(key, offsetof(memory_t, bytes), &out, NULL, &request), "put");
      if (kind == 1) check(canele_get(key, offsetof(memory_t, bytes), &in, NULL, &request), "get");
      if (kind == 2)
        check(canele_atomic(key, offsetof(memory_t, added), CANELE_ATOMIC_ADD, 8, 1, 0, &before, NULL, &request),
              "add");
      if (kind == 3) check(canele_put(key, offsetof(memory_t, round), &number, &notify, &request), "put");
      check(canele_wait(&request, NULL), names[kind]);
      times[kind][round - 1] = (double)(canele_now(engine) - begin) * 1e-3;
    }
    if (memcmp(bytes, back, sizeof back) != 0 || before != round - 1) fail("a get or a fetch-and-add has wrong data");
    uint64_t next = 0;
    if (round < rounds) receive(target, &next, sizeof next);
  }
  check(canele_key_close(key), "close");
  send(target, &card, sizeof card);
  for (int kind = 0; kind < kinds; ++kind) {
    first[kind] = times[kind][0];
    qsort(times[kind], rounds, sizeof **times, by_time);
    printf("%s: first %.0f us, median %.0f, worst %.0f\n", names[kind], first[kind], times[kind][rounds / 2],
           times[kind][rounds - 1]);
    free(times[kind]);
  }
}

int main(int argc, char **argv) {
  const uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 50;
  check(canele_init(NULL, &engine), "init");
  check(canele_session_open(engine, "serve", CANELE_ORDER_PER_TAG, &session), "session");
  if (canele_size(engine) != 3) fail("3 ranks are expected");
  if (canele_rank(engine) == target) own(rounds);
  if (canele_rank(engine) == origin) access_memory(rounds);
  if (canele_rank(engine) == relay) {
    card_t card;
    receive(target, &card, sizeof card);
    send(origin, &card, sizeof card);
  }
  check(canele_session_close(session), "close");
  return canele_finalize(engine) == CANELE_OK ? 0 : 1;
}
