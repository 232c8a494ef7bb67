/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A large message through shared memory while one end computes, that is, calls nothing of the library until the data
 * has moved. The other end, which waits, must have moved it.
 *
 * Run by tests/process/overlap/CMakeLists.txt, two ranks without workers. Argument: a file name to signal with. No time
 * is measured. If the waiting end cannot do it alone the test hangs, and its time limit fails it.
 */
#include <canele/canele.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { words = 1 << 20, rounds = 4 };

static void check(int code, const char *what) {
  if (code == CANELE_OK) return;
  fprintf(stderr, "overlap: %s: %s: %s\n", what, canele_error_string(code), canele_error_detail());
  exit(1);
}

static void compare(const uint64_t *data, uint64_t seed) {
  for (uint64_t i = 0; i < words; ++i) {
    if (data[i] == seed + i) continue;
    fprintf(stderr, "overlap: word %llu is wrong\n", (unsigned long long)i);
    exit(1);
  }
}

/* The receiver computes: it checks its memory until the data is there. */
static void receiver_computes(canele_session_t *session, int rank, uint64_t *data, uint64_t seed) {
  canele_request_t request = {0};
  if (rank == 1) {
    check(canele_irecv(session, 0, 1, CANELE_TAG_EXACT, data, words * sizeof *data, &request), "receive");
    check(canele_barrier(session), "barrier");
    const volatile uint64_t *last = &data[words - 1];
    while (*last != seed + words - 1) {
    }
    check(canele_wait(&request, NULL), "wait");
    compare(data, seed);
  } else {
    check(canele_barrier(session), "barrier");
    check(canele_isend(session, 1, 1, data, words * sizeof *data, &request), "send");
    check(canele_wait(&request, NULL), "wait");
  }
  check(canele_barrier(session), "barrier");
}

/* The sender computes: it checks for a file that the receiver makes when it has the data. */
static void sender_computes(canele_session_t *session, int rank, uint64_t *data, uint64_t seed, const char *file) {
  canele_request_t request = {0};
  if (rank == 1) {
    check(canele_irecv(session, 0, 1, CANELE_TAG_EXACT, data, words * sizeof *data, &request), "receive");
    check(canele_barrier(session), "barrier");
    check(canele_wait(&request, NULL), "wait");
    compare(data, seed);
    if (creat(file, 0600) < 0) exit(1);
  } else {
    check(canele_barrier(session), "barrier");
    check(canele_isend(session, 1, 1, data, words * sizeof *data, &request), "send");
    while (access(file, F_OK) != 0) {
    }
    unlink(file);
    check(canele_wait(&request, NULL), "wait");
  }
  check(canele_barrier(session), "barrier");
}

int main(int argc, char **argv) {
  canele_engine_t *engine;
  canele_session_t *session;
  check(canele_init(NULL, &engine), "init");
  const int rank = canele_rank(engine);
  if (argc != 2 || canele_size(engine) != 2) {
    fprintf(stderr, "usage: canele-run -n 2 process_overlap FILE\n");
    return 2;
  }
  unlink(argv[1]);
  check(canele_session_open(engine, "overlap", CANELE_ORDER_PER_TAG, &session), "session");
  check(canele_barrier(session), "barrier");
  uint64_t *data = malloc(words * sizeof *data);
  for (uint64_t round = 1; round <= 2 * rounds; ++round) {
    const uint64_t seed = round << 32;
    for (uint64_t i = 0; i < words; ++i) data[i] = rank == 0 ? seed + i : 0;
    if (round % 2 == 1) {
      receiver_computes(session, rank, data, seed);
    } else {
      sender_computes(session, rank, data, seed, argv[1]);
    }
  }
  free(data);
  check(canele_session_close(session), "close");
  check(canele_finalize(engine), "finalize");
  return 0;
}
