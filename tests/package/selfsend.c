/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A user's program in C, outside the tree: one message of a rank to itself. Built by package_test.py with pkg-config.
 */
#include <canele/canele.h>
#include <stdio.h>
#include <string.h>

static int check(int code, const char *what) {
  if (code != CANELE_OK) fprintf(stderr, "%s: %s (%s)\n", what, canele_error_string(code), canele_error_detail());
  return code != CANELE_OK;
}

int main(void) {
  static canele_request_t send, receive;
  const char text[] = "hello, canele";
  char got[64] = "";
  canele_engine_t *engine;
  canele_session_t *session;
  canele_status_t status;
  int bad = check(canele_abi_check(CANELE_ABI_VERSION), "abi");
  if (bad || check(canele_init(NULL, &engine), "init")) return 1;
  if (check(canele_session_open(engine, "package-test", CANELE_ORDER_PER_TAG, &session), "open")) return 1;
  const int rank = canele_rank(engine);
  bad |= check(canele_irecv(session, rank, 7, CANELE_TAG_EXACT, got, sizeof got, &receive), "receive");
  bad |= check(canele_isend(session, rank, 7, text, sizeof text, &send), "send");
  bad |= check(canele_wait(&receive, &status), "wait for the receive");
  bad |= check(canele_wait(&send, NULL), "wait for the send");
  bad |= check(canele_session_close(session), "close");
  bad |= check(canele_finalize(engine), "finalize");
  if (bad || status.length != sizeof text || strcmp(got, text) != 0) return 1;
  printf("received: %s\n", got);
  return 0;
}
