/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A large message over TCP while both applications stay away from the library: with a worker it arrives, without one it
 * does not.
 *
 * Run by tests/process/overlap/CMakeLists.txt, two ranks. Arguments: moves or stays, and a file name to signal with.
 * "moves" measures no time: if the data does not arrive, the time limit fails the test. "stays" checks for a while that
 * no data comes: none can, because no thread makes progress.
 */
#include <canele/canele.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { words = 1 << 20, rounds = 3, look_ms = 200 };

static void check(int code, const char *what) {
  if (code == CANELE_OK) return;
  fprintf(stderr, "away: %s: %s: %s\n", what, canele_error_string(code), canele_error_detail());
  exit(1);
}

static void fail(const char *why) {
  fprintf(stderr, "away: %s\n", why);
  exit(1);
}

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* Rank 1: the data comes while no thread calls the library, or does not. This function reads memory that a worker
 * writes, which no program should do, and which TSan would report. */
__attribute__((noinline, no_sanitize("thread"))) static void look(const uint64_t *data, uint64_t seed, int moves) {
  const volatile uint64_t *last = &data[words - 1];
  const double begin = now_ms();
  while (*last != seed + words - 1 && (moves || now_ms() - begin < look_ms)) {
  }
  if (!moves && *last == seed + words - 1) fail("the data came without progress");
}

static void one_round(canele_session_t *session, int rank, uint64_t *data, uint64_t seed, int moves, const char *file) {
  canele_request_t request = {0};
  for (uint64_t i = 0; i < words; ++i) data[i] = rank == 0 ? seed + i : 0;
  if (rank == 1) check(canele_irecv(session, 0, 1, CANELE_TAG_EXACT, data, words * sizeof *data, &request), "receive");
  check(canele_barrier(session), "barrier");
  if (rank == 0) {
    check(canele_isend(session, 1, 1, data, words * sizeof *data, &request), "send");
    while (access(file, F_OK) != 0) {
    }
    unlink(file);
  } else {
    look(data, seed, moves);
    if (creat(file, 0600) < 0) fail("cannot make the file");
  }
  check(canele_wait(&request, NULL), "wait");
  for (uint64_t i = 0; i < words; ++i) {
    if (data[i] != seed + i) fail("the data is wrong");
  }
  check(canele_barrier(session), "barrier");
}

int main(int argc, char **argv) {
  canele_engine_t *engine;
  canele_session_t *session;
  check(canele_init(NULL, &engine), "init");
  const int rank = canele_rank(engine);
  if (argc != 3 || canele_size(engine) != 2) {
    fprintf(stderr, "usage: canele-run -n 2 process_away moves|stays FILE\n");
    return 2;
  }
  if (rank == 0) unlink(argv[2]);
  check(canele_session_open(engine, "away", CANELE_ORDER_PER_TAG, &session), "session");
  check(canele_barrier(session), "barrier");
  uint64_t *data = malloc(words * sizeof *data);
  if (data == NULL) fail("no memory");
  for (uint64_t round = 1; round <= rounds; ++round)
    one_round(session, rank, data, round << 32, strcmp(argv[1], "moves") == 0, argv[2]);
  free(data);
  check(canele_session_close(session), "close");
  check(canele_finalize(engine), "finalize");
  return 0;
}
