/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two ranks that answer each other from event loops of their own: no wake-up is lost.
 *
 * Usage: event_loop [CYCLES [SECONDS]]. Each rank sleeps in poll() between two messages, on the descriptor of its
 * completion queue and on a pipe. A poll that lasts LIMIT_MS ends the job. Then both ranks sleep for SECONDS, and must
 * use next to no processor time.
 *
 * Run by ctest with every kind of worker. The main thread, and the library's own.
 */
#include <canele/wakeup.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { LIMIT_MS = 20000 };

static canele_engine_t *engine;
static canele_session_t *session;
static canele_queue_t queue;
static canele_wakeup_t *wakeup;
static int rank, other_end[2];
static long slept;

static void must(int code, const char *what) {
  if (code == CANELE_OK) return;
  fprintf(stderr, "rank %d: %s: %s: %s\n", rank, what, canele_error_string(code), canele_error_detail());
  canele_abort(engine, 1, what);
  exit(1);
}

static canele_post_options_t into_queue(void) {
  canele_post_options_t options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.done.kind = CANELE_COMPLETE_QUEUE;
  options.done.object = &queue;
  return options;
}

/* Sleeps until `count` operations have ended, at most ms. Returns how many have not. */
static int await(int count, int ms) {
  canele_entry_t entries[4];
  while (count > 0) {
    int code = 0;
    while (count > 0 && (code = canele_wakeup_arm(wakeup)) == CANELE_EAGAIN) {
      const int taken = canele_queue_take(engine, &queue, entries, 4);
      if (taken < 0) must(taken, "take");
      count -= taken;
    }
    if (count <= 0) break;
    must(code, "arm");
    struct pollfd all[] = {{canele_wakeup_descriptor(wakeup), POLLIN, 0}, {other_end[0], POLLIN, 0}};
    if (poll(all, 2, ms) == 0) break;
    slept++;
    must(canele_wakeup_disarm(wakeup), "disarm");
  }
  must(canele_wakeup_disarm(wakeup), "disarm");
  return count;
}

static void must_come(int count, long cycle) {
  if (await(count, LIMIT_MS) == 0) return;
  fprintf(stderr, "rank %d: no wake-up within %d ms in cycle %ld\n", rank, LIMIT_MS, cycle);
  canele_abort(engine, 1, "a wake-up is lost");
  exit(1);
}

static double own_seconds(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

int main(int argc, char **argv) {
  const long cycles = argc > 1 ? atol(argv[1]) : 1000;
  const int seconds = argc > 2 ? atoi(argv[2]) : 0;
  long out = 0, in = 0;
  must(canele_init(NULL, &engine), "init");
  rank = canele_rank(engine);
  must(canele_session_open(engine, "event loop", 0, &session), "session_open");
  must(canele_wakeup_open(engine, &queue, &wakeup), "wakeup_open");
  if (canele_size(engine) != 2 || pipe(other_end) != 0) {
    fprintf(stderr, "event_loop: expected: 2 ranks, and a pipe\n");
    return 2;
  }
  const canele_data_t data = canele_data_contiguous(&out, sizeof out), into = canele_data_contiguous(&in, sizeof in);
  const canele_post_options_t options = into_queue();
  for (long i = 0; i < cycles; i++) {
    must(canele_post_receive(session, 1 - rank, 1, CANELE_TAG_EXACT, &into, &options, NULL), "receive");
    if (rank == 1) must_come(1, i);
    out = i;
    must(canele_post_send(session, 1 - rank, 1, &data, &options, NULL), "send");
    must_come(rank == 1 ? 1 : 2, i);
    if (in != i) {
      fprintf(stderr, "rank %d: message %ld instead of %ld\n", rank, in, i);
      return 1;
    }
  }
  const double before = own_seconds();
  int left = 0;
  if (seconds > 0) {
    must(canele_post_receive(session, 1 - rank, 2, CANELE_TAG_EXACT, &into, &options, NULL), "receive");
    left = await(1, seconds * 1000); /* until the other rank has slept enough */
  }
  const double share = seconds > 0 ? (own_seconds() - before) / seconds : 0;
  printf("rank %d: %ld cycles, slept %ld times; then %.2f %% of a core for %d s\n", rank, cycles, slept, 100 * share,
         seconds);
  must(canele_wakeup_close(wakeup), "close");
  if (seconds > 0) {
    must(canele_inject(session, 1 - rank, 2, &out, sizeof out), "inject");
    canele_entry_t entry;
    if (left > 0 && canele_queue_wait(engine, &queue, &entry, 1, UINT64_MAX) != 1) return 1;
  }
  must(canele_session_close(session), "session_close");
  must(canele_finalize(engine), "finalize");
  return share < 0.05 ? 0 : 1;
}
