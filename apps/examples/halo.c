/* SPDX-License-Identifier: BSD-3-Clause
 *
 * halo.c - a halo exchange by puts with notification: the heat equation on a ring of ranks.
 *
 * For readers who know hello.c. Each rank has a row of cells, and writes its border cells straight into the halo cells
 * of its neighbours. A counter of notifications says when both halos of a step are here. No receive is posted.
 *
 * Two halos take turns, so a neighbour that is one step ahead does not overwrite what this rank still reads. It cannot
 * be two steps ahead: it needs this rank's cells of the step between.
 *
 *   cc halo.c $(pkg-config --cflags --libs canele) -o halo && canele-run -n 4 ./halo
 */
#include <canele/collectives.h>
#include <canele/one_sided.h>
#include <stdio.h>

enum { CELLS = 64, STEPS = 1000, LEFT = 0, RIGHT = 1 };

/* What a neighbour writes to: halo[turn][side], by rank's own memory layout. */
static double halo[2][2];

/* What the ranks tell each other at the start. */
typedef struct {
  unsigned char key[CANELE_KEY_SIZE];
  uint32_t slot[2]; /* by turn */
} card_t;

static int failed(const char *call, int error) {
  const char *detail = canele_error_detail();
  fprintf(stderr, "halo: %s: %s%s%s\n", call, canele_error_string(error), *detail ? ": " : "", detail);
  return 1;
}
#define MUST(call)                                         \
  do {                                                     \
    const int error_ = (call);                             \
    if (error_ != CANELE_OK) return failed(#call, error_); \
  } while (0)

/* Writes a border cell into the halo of the neighbour, and notifies it. */
static int send_border(canele_key_t *key, const card_t *card, int turn, int side, const double *cell) {
  const canele_data_t data = canele_data_contiguous(cell, sizeof *cell);
  canele_access_options_t options = {.struct_size = sizeof options};
  options.slot = card->slot[turn];
  MUST(canele_put(key, sizeof *cell * (size_t)(2 * turn + side), &data, &options, NULL));
  return 0;
}

static int run(canele_engine_t *engine, canele_group_t *group) {
  const int rank = canele_rank(engine), size = canele_size(engine);
  const int neighbour[2] = {(rank + size - 1) % size, (rank + 1) % size};
  static double cells[CELLS], next[CELLS], border[2][2];
  canele_completion_counter_t arrived[2] = {{{0}}, {{0}}};
  canele_memory_t *memory;
  card_t mine, cards[64];
  if (size > 64) return fprintf(stderr, "halo: %d ranks; expected: at most 64\n", size), 1;

  MUST(canele_memory_register(engine, halo, sizeof halo, NULL, &memory));
  MUST(canele_memory_key(memory, mine.key));
  for (int turn = 0; turn < 2; ++turn) {
    const canele_completion_t count = {.kind = CANELE_COMPLETE_COUNTER, .object = &arrived[turn]};
    MUST(canele_notification_open(engine, &count, &mine.slot[turn]));
  }
  canele_collective_options_t blocking = {.struct_size = sizeof blocking, .blocking = 1};
  const canele_parts_t equal = {.length = sizeof mine};
  MUST(canele_iallgather(group, &mine, cards, &equal, &blocking, NULL));
  canele_key_t *key[2];
  for (int side = 0; side < 2; ++side) MUST(canele_key_open(engine, cards[neighbour[side]].key, &key[side]));

  double sum = 0, total = 0;
  for (int i = 0; i < CELLS; ++i) cells[i] = rank == 0 && i < 8 ? 100.0 : 0.0;
  for (int step = 0; step < STEPS; ++step) {
    const int turn = step % 2;
    border[turn][LEFT] = cells[0]; /* stays until the put has ended, two steps later at the latest */
    border[turn][RIGHT] = cells[CELLS - 1];
    for (int side = 0; side < 2; ++side) /* my left border is the right halo of my left neighbour */
      if (send_border(key[side], &cards[neighbour[side]], turn, 1 - side, &border[turn][side])) return 1;
    MUST(canele_completion_counter_wait(engine, &arrived[turn], 2 * (uint64_t)(step / 2 + 1), UINT64_MAX));
    for (int i = 0; i < CELLS; ++i) {
      const double left = i > 0 ? cells[i - 1] : halo[turn][LEFT];
      const double right = i < CELLS - 1 ? cells[i + 1] : halo[turn][RIGHT];
      next[i] = cells[i] + 0.25 * (left - 2 * cells[i] + right);
    }
    for (int i = 0; i < CELLS; ++i) cells[i] = next[i];
  }
  for (int i = 0; i < CELLS; ++i) sum += cells[i];
  canele_operator_t add;
  MUST(canele_operator_of(CANELE_SUM, CANELE_DOUBLE, &add));
  MUST(canele_iallreduce(group, &sum, &total, 1, &add, &blocking, NULL));
  const int right_sum = total > 799.999 && total < 800.001; /* heat is neither made nor lost */
  if (rank == 0 || !right_sum)
    printf("halo: %d steps on %d ranks: the heat is %.6f (%s)\n", STEPS, size, total, right_sum ? "right" : "WRONG");
  for (int side = 0; side < 2; ++side) {
    canele_request_t flushed = {0};
    MUST(canele_flush(engine, neighbour[side], NULL, &flushed));
    MUST(canele_wait(&flushed, NULL));
    MUST(canele_key_close(key[side]));
  }
  MUST(canele_ibarrier(group, &blocking, NULL)); /* no rank writes to this one any more */
  MUST(canele_memory_free(memory));
  return right_sum ? 0 : 1;
}

int main(void) {
  canele_engine_t *engine;
  canele_group_t *group;
  int error = canele_init(NULL, &engine);
  if (error) return failed("canele_init", error);
  error = canele_group_create(engine, "halo", NULL, 0, &group);
  const int code = error ? failed("canele_group_create", error) : run(engine, group);
  if (code) canele_abort(engine, code, "the halo exchange has failed");
  canele_group_destroy(group);
  error = canele_finalize(engine);
  return error ? failed("canele_finalize", error) : 0;
}
