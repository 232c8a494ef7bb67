/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Waits in canele_wait, and prints how often each rank woke up in ten seconds and how much CPU time that cost. The
 * first two seconds do not count: threads that helped to start the job come to rest then.
 *
 * Used by tests/process/idle/CMakeLists.txt, under canele-run. The number of wake-ups decides. The limit on CPU time
 * finds a thread that polls: beside other work on the machine a wake-up costs several times as much.
 */
#include <canele/canele.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static const double most_wakes = 80;              /* a second and rank */
static const double most_share = 0.1;             /* of one core, all ranks together */
static const int start_seconds = 2, seconds = 10; /* what is not counted, and what is */

static void check(int code, const char *what) {
  if (code == CANELE_OK) return;
  fprintf(stderr, "idle: %s: %s: %s\n", what, canele_error_string(code), canele_error_detail());
  exit(1);
}

struct cost {
  double wakes, seconds;
};

/* Returns the cost of this process so far. */
static struct cost cost_now(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const struct cost cost = {(double)usage.ru_nvcsw,
                            (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
                                1e-6 * ((double)usage.ru_utime.tv_usec + (double)usage.ru_stime.tv_usec)};
  return cost;
}

struct sender {
  canele_session_t *session;
  int rank, size;
  struct cost before; /* when the counting began */
};

static void let_pass(int some_seconds) {
  struct timespec left = {some_seconds, 0};
  while (nanosleep(&left, &left) != 0) {
  }
}

/* Notes when the counting begins. Rank 0 then waits the ten seconds, and sends a message to every rank. */
static void *send_after(void *argument) {
  struct sender *sender = argument;
  let_pass(start_seconds);
  sender->before = cost_now();
  if (sender->rank != 0) return NULL;
  let_pass(seconds);
  for (int rank = 0; rank < sender->size; ++rank) {
    canele_request_t request = {0};
    check(canele_isend(sender->session, rank, 1, NULL, 0, &request), "send");
    check(canele_wait(&request, NULL), "wait for the send");
  }
  return NULL;
}

int main(void) {
  canele_engine_t *engine;
  canele_session_t *session;
  check(canele_init(NULL, &engine), "init");
  check(canele_session_open(engine, "idle", CANELE_ORDER_PER_TAG, &session), "session");
  const int rank = canele_rank(engine), size = canele_size(engine);
  check(canele_barrier(session), "barrier");

  struct sender sender = {session, rank, size, {0, 0}};
  pthread_t thread;
  if (pthread_create(&thread, NULL, send_after, &sender) != 0) return 1;
  canele_request_t request = {0};
  check(canele_irecv(session, 0, 1, CANELE_TAG_EXACT, NULL, 0, &request), "receive");
  check(canele_wait(&request, NULL), "wait");
  const struct cost after = cost_now();
  pthread_join(thread, NULL);
  struct cost used = {after.wakes - sender.before.wakes, after.seconds - sender.before.seconds}, total = {0, 0};

  /* rank 0 adds them up */
  canele_request_t send = {0};
  check(canele_isend(session, 0, 2, &used, sizeof used, &send), "send");
  for (int i = 0; rank == 0 && i < size; ++i) {
    struct cost one;
    canele_request_t receive = {0};
    check(canele_irecv(session, i, 2, CANELE_TAG_EXACT, &one, sizeof one, &receive), "receive");
    check(canele_wait(&receive, NULL), "wait");
    total.wakes += one.wakes;
    total.seconds += one.seconds;
  }
  check(canele_wait(&send, NULL), "wait");
  int result = 0;
  if (rank == 0) {
    const double wakes = total.wakes / seconds / size, share = total.seconds / seconds;
    printf(
        "%d ranks waited for %d s: %.1f wake-ups a second and rank (at most %.0f), %.2f %% of a core (at most %.0f)\n",
        size, seconds, wakes, most_wakes, 100 * share, 100 * most_share);
    result = wakes <= most_wakes && share <= most_share ? 0 : 1;
  }
  check(canele_finalize(engine), "finalize");
  return result;
}
