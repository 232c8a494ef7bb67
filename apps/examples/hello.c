/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hello.c - a first program in C: a token goes round the ring of ranks, and every rank adds its own number to it.
 *
 * For newcomers: read it from main() down. It has one thread. A receive is posted before the matching send, so that the
 * message arrives in its final place without a copy.
 *
 *   cc hello.c $(pkg-config --cflags --libs canele) -o hello && canele-run -n 4 ./hello
 */
#include <canele/canele.h>
#include <inttypes.h>
#include <stdio.h>

enum { TOKEN_TAG = 1 };

/* Prints which call failed and why. Returns the exit code that the launcher sees. */
static int failed(const char *call, int error) {
  const char *detail = canele_error_detail();
  fprintf(stderr, "hello: %s: %s%s%s\n", call, canele_error_string(error), *detail ? ": " : "", detail);
  return 1;
}

/* Rank 0 starts the token, every rank passes it on, and rank 0 gets it back. *token is the sum that this rank has seen.
 */
static int pass_token(canele_session_t *session, int rank, int size, uint64_t *token) {
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  canele_request_t send = {0}, receive = {0}; /* zeroed before the first use; they must not move while in use */
  uint64_t outgoing = 0;

  int error = canele_irecv(session, left, TOKEN_TAG, CANELE_TAG_EXACT, token, sizeof *token, &receive);
  if (error) return failed("canele_irecv", error);
  if (rank > 0) { /* the other ranks need the token before they can pass it on */
    error = canele_wait(&receive, NULL);
    if (error) return failed("canele_wait", error);
    outgoing = *token + (uint64_t)rank;
  }
  error = canele_isend(session, right, TOKEN_TAG, &outgoing, sizeof outgoing, &send);
  if (error) return failed("canele_isend", error);

  /* A NULL request counts as done: only rank 0 still waits for its receive here. */
  canele_request_t *both[2] = {&send, rank == 0 ? &receive : NULL};
  error = canele_wait_all(2, both, NULL);
  return error ? failed("canele_wait_all", error) : 0;
}

/* A wrong argument is rejected at once: nothing is sent, and the library says what is expected. */
static void show_a_mistake(canele_session_t *session, int size) {
  canele_request_t request = {0};
  const int error = canele_isend(session, size, TOKEN_TAG, "", 0, &request);
  printf("hello: a send to rank %d of %d is refused: %s: %s\n", size, size, canele_error_string(error),
         canele_error_detail());
}

int main(void) {
  canele_engine_t *engine;
  canele_session_t *session;
  uint64_t token = 0;

  int error = canele_abi_check(CANELE_ABI_VERSION); /* does the library match this header? */
  if (error) return failed("canele_abi_check", error);
  error = canele_init(NULL, &engine); /* joins the launcher's job, or makes a job of one rank */
  if (error) return failed("canele_init", error);
  error = canele_session_open(engine, "hello", CANELE_ORDER_PER_TAG, &session);
  if (error) return failed("canele_session_open", error);

  const int rank = canele_rank(engine), size = canele_size(engine);
  int code = pass_token(session, rank, size, &token);
  if (code) canele_abort(engine, code, "the token is lost"); /* the other ranks would wait for ever */
  if (rank == 0) {
    const uint64_t expected = (uint64_t)size * (uint64_t)(size - 1) / 2;
    printf("hello: the token came back with %" PRIu64 " from %d rank%s\n", token, size, size == 1 ? "" : "s");
    show_a_mistake(session, size);
    if (token != expected) code = 1;
  }

  error = canele_session_close(session);
  if (error) return failed("canele_session_close", error);
  error = canele_finalize(engine); /* waits for all ranks */
  return error ? failed("canele_finalize", error) : code;
}
