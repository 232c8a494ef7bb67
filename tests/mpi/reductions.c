/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reductions, compared with a fold that is computed here. Scans and scattered results, every predefined operator and
 * type, the program's own operators on types with and without gaps, and the order of operands.
 */
#include <complex.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "both.h"

/* ------------------------------------------------------------------------------------ predefined operators */

/* Returns what rank `rank` gives at place i: small, of both signs where the type has them, and sometimes zero. */
static int given(int rank, int i) { return (rank * 5 + i * 3) % 7 - 2; }

enum { COUNT = 9 };

/* FOLD(T, mpi type, mpi operator, expression of a and b): allreduce is the fold over all ranks. */
#define FOLD(T, type, op, expression)                                \
  do {                                                               \
    T mine_[COUNT], result_[COUNT];                                  \
    for (int i = 0; i < COUNT; ++i) mine_[i] = (T)given(rank, i);    \
    DO(Allreduce, allreduce, mine_, result_, COUNT, type, op, comm); \
    for (int i = 0; i < COUNT; ++i) {                                \
      T b = (T)given(0, i);                                          \
      for (int peer = 1; peer < size; ++peer) {                      \
        T a = b;                                                     \
        b = (T)given(peer, i);                                       \
        b = (T)(expression);                                         \
      }                                                              \
      CHECK(result_[i] == b || size == 1);                           \
    }                                                                \
  } while (0)

#define ARITHMETIC(T, type)      \
  FOLD(T, type, MPI_SUM, a + b); \
  FOLD(T, type, MPI_PROD, a *b)
#define ORDER(T, type)                   \
  FOLD(T, type, MPI_MIN, a < b ? a : b); \
  FOLD(T, type, MPI_MAX, a < b ? b : a)
#define LOGICAL(T, type)                     \
  FOLD(T, type, MPI_LAND, a != 0 && b != 0); \
  FOLD(T, type, MPI_LOR, a != 0 || b != 0);  \
  FOLD(T, type, MPI_LXOR, (a != 0) != (b != 0))
#define BITWISE(T, type)         \
  FOLD(T, type, MPI_BAND, a &b); \
  FOLD(T, type, MPI_BOR, a | b); \
  FOLD(T, type, MPI_BXOR, a ^ b)
#define INTEGER(T, type) \
  ARITHMETIC(T, type);   \
  ORDER(T, type);        \
  LOGICAL(T, type);      \
  BITWISE(T, type)

static void narrow(MPI_Comm comm, int rank, int size) {
  INTEGER(int8_t, MPI_INT8_T);
  INTEGER(int16_t, MPI_INT16_T);
  INTEGER(uint8_t, MPI_UINT8_T);
  INTEGER(uint16_t, MPI_UINT16_T);
  INTEGER(signed char, MPI_SIGNED_CHAR);
  INTEGER(unsigned char, MPI_UNSIGNED_CHAR);
  INTEGER(short, MPI_SHORT);
  INTEGER(unsigned short, MPI_UNSIGNED_SHORT);
  LOGICAL(bool, MPI_C_BOOL);
  BITWISE(unsigned char, MPI_BYTE);
}

static void wide(MPI_Comm comm, int rank, int size) {
  INTEGER(int32_t, MPI_INT32_T);
  INTEGER(int64_t, MPI_INT64_T);
  INTEGER(uint32_t, MPI_UINT32_T);
  INTEGER(uint64_t, MPI_UINT64_T);
  INTEGER(int, MPI_INT);
  INTEGER(unsigned, MPI_UNSIGNED);
  INTEGER(long, MPI_LONG);
  INTEGER(long long, MPI_LONG_LONG);
  INTEGER(unsigned long long, MPI_UNSIGNED_LONG_LONG);
  INTEGER(MPI_Aint, MPI_AINT);
  INTEGER(MPI_Count, MPI_COUNT);
#ifdef CANELE_MPI /* Open MPI 4.1 compares the first as signed and the second as unsigned */
  INTEGER(unsigned long, MPI_UNSIGNED_LONG);
  INTEGER(MPI_Offset, MPI_OFFSET);
#endif
}

static void floating(MPI_Comm comm, int rank, int size) {
  ARITHMETIC(float, MPI_FLOAT);
  ORDER(float, MPI_FLOAT);
  ARITHMETIC(double, MPI_DOUBLE);
  ORDER(double, MPI_DOUBLE);
  ARITHMETIC(long double, MPI_LONG_DOUBLE);
  ORDER(long double, MPI_LONG_DOUBLE);
  ARITHMETIC(float complex, MPI_C_FLOAT_COMPLEX);
  ARITHMETIC(double complex, MPI_C_DOUBLE_COMPLEX);
  ARITHMETIC(long double complex, MPI_C_LONG_DOUBLE_COMPLEX);
}

/* Of equal values the lower index wins. What lies between the pairs belongs to the program. */
#define LOCATE(T, type)                                                              \
  do {                                                                               \
    struct {                                                                         \
      T value;                                                                       \
      int index;                                                                     \
    } mine_[COUNT], least_[COUNT], most_[COUNT];                                     \
    for (int i = 0; i < COUNT; ++i) {                                                \
      mine_[i].value = (T)given(rank, i);                                            \
      mine_[i].index = (rank * 3 + i) % 5;                                           \
    }                                                                                \
    DO(Allreduce, allreduce, mine_, least_, COUNT, type, MPI_MINLOC, comm);          \
    DO(Allreduce, allreduce, mine_, most_, COUNT, type, MPI_MAXLOC, comm);           \
    for (int i = 0; i < COUNT; ++i) {                                                \
      int least = INT_MAX, most = INT_MIN, at_least = INT_MAX, at_most = INT_MAX;    \
      for (int peer = 0; peer < size; ++peer) {                                      \
        const int value = given(peer, i), index = (peer * 3 + i) % 5;                \
        if (value < least || (value == least && index < at_least)) at_least = index; \
        if (value > most || (value == most && index < at_most)) at_most = index;     \
        if (value < least) least = value;                                            \
        if (value > most) most = value;                                              \
      }                                                                              \
      CHECK(least_[i].value == (T)least && least_[i].index == at_least);             \
      CHECK(most_[i].value == (T)most && most_[i].index == at_most);                 \
    }                                                                                \
  } while (0)

static void locations(MPI_Comm comm, int rank, int size) {
  LOCATE(float, MPI_FLOAT_INT);
  LOCATE(double, MPI_DOUBLE_INT);
  LOCATE(long, MPI_LONG_INT);
  LOCATE(int, MPI_2INT);
  LOCATE(short, MPI_SHORT_INT);
  LOCATE(long double, MPI_LONG_DOUBLE_INT);
  struct {
    double value;
    int index, own;
  } mine[2] = {{-rank, rank, 77}, {rank, rank, 78}};
  DO(Allreduce, allreduce, MPI_IN_PLACE, mine, 2, MPI_DOUBLE_INT, MPI_MINLOC, comm);
  CHECK(mine[0].value == 1 - size && mine[0].index == size - 1 && mine[0].own == 77);
  CHECK(mine[1].value == 0 && mine[1].index == 0 && mine[1].own == 78);
}

/* ------------------------------------------------------------------------------- operators that do not commute */

/* Maps x -> a * x + b; their composition depends on the order. */
struct map {
  unsigned a, b;
};

static struct map map_of(int rank, int i) { return (struct map){(unsigned)(rank * 2 + i + 1), (unsigned)(rank + i)}; }

/* Applies the map of the lower ranks first, then the other. */
static struct map then(struct map first, struct map second) {
  return (struct map){first.a * second.a, first.b * second.a + second.b};
}

static void compose(void *in, void *inout, int *count, MPI_Datatype *type) {
  const struct map *first = in;
  struct map *second = inout;
  int bytes;
  MPI_Type_size(*type, &bytes);
  CHECK_EQ(bytes, sizeof(struct map));
  for (int i = 0; i < *count; ++i) second[i] = then(first[i], second[i]);
}

/* Returns the composed map of ranks 0 to last. */
static struct map composed(int last, int i) {
  struct map result = map_of(0, i);
  for (int peer = 1; peer <= last; ++peer) result = then(result, map_of(peer, i));
  return result;
}

static void check_map(struct map actual, struct map expected) {
  CHECK_EQ(actual.a, expected.a);
  CHECK_EQ(actual.b, expected.b);
}

enum { MAPS = 700 };
static struct map mine_[MAPS * 8], result_[MAPS * 8];

static void set_maps(int rank, int count, int in_result) {
  for (int i = 0; i < MAPS * 8; ++i) {
    const struct map none = {9, 9};
    mine_[i] = i < count ? map_of(rank, i) : none;
    result_[i] = in_result && i < count ? map_of(rank, i) : none;
  }
}

static void ordered(MPI_Comm comm, int rank, int size) {
  MPI_Datatype type;
  MPI_Op op;
  int commutes = 1;
  MPI_Type_contiguous(2, MPI_UNSIGNED, &type);
  MPI_Type_commit(&type);
  MPI_Op_create(compose, 0, &op);
  MPI_Op_commutative(op, &commutes);
  CHECK_EQ(commutes, 0);
  for (int place = 0; place < 2; ++place) {
    const void *from = place ? MPI_IN_PLACE : mine_;
    for (int root = 0; root < size; ++root) {
      const int here = place && rank == root;
      set_maps(rank, MAPS, here);
      DO(Reduce, reduce, here ? MPI_IN_PLACE : mine_, rank == root ? result_ : NULL, MAPS, type, op, root, comm);
      for (int i = 0; i < MAPS && rank == root; ++i) check_map(result_[i], composed(size - 1, i));
    }
    set_maps(rank, MAPS, place);
    DO(Allreduce, allreduce, from, result_, MAPS, type, op, comm);
    for (int i = 0; i < MAPS; ++i) check_map(result_[i], composed(size - 1, i));
    set_maps(rank, MAPS, place);
    DO(Scan, scan, from, result_, MAPS, type, op, comm);
    for (int i = 0; i < MAPS; ++i) check_map(result_[i], composed(rank, i));
    set_maps(rank, MAPS, place);
    DO(Exscan, exscan, from, result_, MAPS, type, op, comm);
    for (int i = 0; i < MAPS && rank > 0; ++i) check_map(result_[i], composed(rank - 1, i));
    check_map(result_[MAPS], (struct map){9, 9});
  }
  MPI_Op_free(&op);
  MPI_Type_free(&type);
}

/* Parts of equal and of different lengths, one of them empty. */
static void scattered(MPI_Comm comm, int rank, int size) {
  MPI_Datatype type;
  MPI_Op op;
  int counts[8], first[9] = {0};
  MPI_Type_contiguous(2, MPI_UNSIGNED, &type);
  MPI_Type_commit(&type);
  MPI_Op_create(compose, 0, &op);
  for (int peer = 0; peer < size; ++peer) {
    counts[peer] = peer == 1 ? 0 : 50 + peer * 90;
    first[peer + 1] = first[peer] + counts[peer];
  }
  for (int place = 0; place < 2; ++place) {
    const void *from = place ? MPI_IN_PLACE : mine_;
    set_maps(rank, 60 * size, place);
    DO(Reduce_scatter_block, reduce_scatter_block, from, result_, 60, type, op, comm);
    for (int i = 0; i < 60; ++i) check_map(result_[i], composed(size - 1, 60 * rank + i));
    set_maps(rank, first[size], place);
    DO_SMALL(Reduce_scatter, reduce_scatter, from, result_, counts, type, op, comm);
    for (int i = 0; i < counts[rank]; ++i) check_map(result_[i], composed(size - 1, first[rank] + i));
    int numbers[24], sums[24];
    for (int i = 0; i < 3 * size; ++i) numbers[i] = sums[i] = rank * 10 + i;
    DO(Reduce_scatter_block, reduce_scatter_block, place ? MPI_IN_PLACE : numbers, sums, 3, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < 3; ++i) CHECK_EQ(sums[i], 10 * size * (size - 1) / 2 + size * (3 * rank + i));
  }
  MPI_Op_free(&op);
  MPI_Type_free(&type);
}

/* --------------------------------------------------------------------------------------------- types with gaps */

/* The type leaves `note` out: the field belongs to the program, and each rank has its own value. */
struct padded {
  char letter;
  int number;
  int note;
  double weight;
};

static void add_padded(void *in, void *inout, int *count, MPI_Datatype *type) {
  const struct padded *a = in;
  struct padded *b = inout;
  MPI_Aint lower, extent;
  MPI_Type_get_extent(*type, &lower, &extent);
  CHECK_EQ(extent, sizeof(struct padded));
  for (int i = 0; i < *count; ++i) {
    b[i].letter = a[i].letter < b[i].letter ? a[i].letter : b[i].letter;
    b[i].number += a[i].number;
    b[i].weight += a[i].weight;
  }
}

static MPI_Datatype padded_type(void) {
  const int blocks[3] = {1, 1, 1};
  const MPI_Aint places[3] = {offsetof(struct padded, letter), offsetof(struct padded, number),
                              offsetof(struct padded, weight)};
  const MPI_Datatype types[3] = {MPI_CHAR, MPI_INT, MPI_DOUBLE};
  MPI_Datatype bare, type;
  MPI_Type_create_struct(3, blocks, places, types, &bare);
  MPI_Type_create_resized(bare, 0, sizeof(struct padded), &type);
  MPI_Type_free(&bare);
  MPI_Type_commit(&type);
  return type;
}

static void fill_padded(struct padded *items, int count, int rank, int empty) {
  for (int i = 0; i < count; ++i) {
    items[i] = (struct padded){(char)('a' + (rank + i) % 20), rank + i, 1000 * rank + i, 0.5 * rank};
    if (empty) items[i] = (struct padded){'z', -1, 1000 * rank + i, -1};
  }
}

static void check_padded(const struct padded *item, int i, int ranks, int note) {
  char letter = 'z';
  int number = 0;
  for (int peer = 0; peer < ranks; ++peer) {
    const char other = (char)('a' + (peer + i) % 20);
    if (other < letter) letter = other;
    number += peer + i;
  }
  CHECK_EQ(item->letter, letter);
  CHECK_EQ(item->number, number);
  CHECK(item->weight == 0.25 * ranks * (ranks - 1));
  CHECK_EQ(item->note, note);
}

static void gaps(MPI_Comm comm, int rank, int size) {
  struct padded mine[16], result[16];
  MPI_Op op;
  MPI_Datatype type = padded_type();
  MPI_Op_create(add_padded, 1, &op);
  for (int place = 0; place < 2; ++place) {
    fill_padded(mine, 16, rank, 0);
    fill_padded(result, 16, rank, !place);
    DO(Allreduce, allreduce, place ? MPI_IN_PLACE : mine, result, 16, type, op, comm);
    for (int i = 0; i < 16; ++i) check_padded(&result[i], i, size, 1000 * rank + i);
    fill_padded(result, 16, rank, !place);
    DO(Scan, scan, place ? MPI_IN_PLACE : mine, result, 16, type, op, comm);
    for (int i = 0; i < 16; ++i) check_padded(&result[i], i, rank + 1, 1000 * rank + i);
    fill_padded(result, 16, rank, !place);
    DO(Reduce_scatter_block, reduce_scatter_block, place ? MPI_IN_PLACE : mine, result, 2, type, op, comm);
    for (int i = 0; i < 2; ++i) check_padded(&result[i], 2 * rank + i, size, 1000 * rank + i);
    const int here = place && rank == size - 1;
    fill_padded(result, 16, rank, !here);
    DO(Reduce, reduce, here ? MPI_IN_PLACE : mine, result, 16, type, op, size - 1, comm);
    for (int i = 0; i < 16 && rank == size - 1; ++i) check_padded(&result[i], i, size, 1000 * rank + i);
    for (int i = 0; i < 16 && rank < size - 1; ++i) CHECK_EQ(result[i].number, -1);
    fill_padded(result, 16, rank, 1);
    DO(Exscan, exscan, mine, result, 16, type, op, comm);
    for (int i = 0; i < 16 && rank > 0; ++i) check_padded(&result[i], i, rank, 1000 * rank + i);
    for (int i = 0; i < 16 && rank == 0; ++i) CHECK_EQ(result[i].number, -1);
  }
  MPI_Op_free(&op);
  MPI_Type_free(&type);
}

/* A column of a matrix of 4 x 4, whose extent is one element, so that the next column begins one element later. */
static void add_columns(void *in, void *inout, int *count, MPI_Datatype *type) {
  (void)type;
  const int *a = in;
  int *b = inout;
  for (int i = 0; i < *count; ++i) {
    for (int row = 0; row < 4; ++row) b[i + 4 * row] += a[i + 4 * row];
  }
}

static void columns(MPI_Comm comm, int rank, int size) {
  MPI_Datatype column, type;
  MPI_Op op;
  MPI_Type_vector(4, 1, 4, MPI_INT, &column);
  MPI_Type_create_resized(column, 0, sizeof(int), &type);
  MPI_Type_commit(&type);
  MPI_Op_create(add_columns, 1, &op);
  int mine[16], sum[16];
  for (int i = 0; i < 16; ++i) {
    mine[i] = rank * 100 + i;
    sum[i] = -1;
  }
  DO(Allreduce, allreduce, mine, sum, 3, type, op, comm);
  for (int i = 0; i < 16; ++i) CHECK_EQ(sum[i], i % 4 == 3 ? -1 : size * (size - 1) / 2 * 100 + size * i);
  DO(Allreduce, allreduce, MPI_IN_PLACE, mine + 1, 2, type, op, comm);
  for (int i = 0; i < 16; ++i) {
    CHECK_EQ(mine[i], i % 4 == 1 || i % 4 == 2 ? size * (size - 1) / 2 * 100 + size * i : rank * 100 + i);
  }
  MPI_Op_free(&op);
  MPI_Type_free(&type);
  MPI_Type_free(&column);
}

/* ---------------------------------------------------------------------------------------------------- and alone */

static void local(MPI_Comm comm, int rank, int size) {
  (void)comm;
  (void)size;
  MPI_Op op;
  MPI_Datatype type;
  int commutes = 0, a[3] = {1, 2, 3}, b[3] = {10, 20, 30};
  CHECK_EQ(MPI_Reduce_local(a, b, 3, MPI_INT, MPI_SUM), MPI_SUCCESS);
  for (int i = 0; i < 3; ++i) CHECK_EQ(b[i], 11 * (i + 1));
  MPI_Type_contiguous(2, MPI_UNSIGNED, &type);
  MPI_Type_commit(&type);
  MPI_Op_create(compose, 0, &op);
  struct map first = map_of(rank, 1), second = map_of(rank + 1, 2);
  const struct map both = then(first, second);
  MPI_Reduce_local(&first, &second, 1, type, op);
  check_map(second, both);
  MPI_Op_commutative(MPI_MAXLOC, &commutes);
  CHECK_EQ(commutes, 1);
#ifdef CANELE_MPI /* others differ here */
  MPI_Op_commutative(MPI_REPLACE, &commutes);
  CHECK_EQ(commutes, 0);
  MPI_Op_commutative(MPI_NO_OP, &commutes);
  CHECK_EQ(commutes, 0);
#endif
  MPI_Op_free(&op);
  MPI_Type_free(&type);
}

static void everything(MPI_Comm comm, int rank, int size) {
  narrow(comm, rank, size);
  wide(comm, rank, size);
  floating(comm, rank, size);
  locations(comm, rank, size);
  ordered(comm, rank, size);
  scattered(comm, rank, size);
  gaps(comm, rank, size);
  columns(comm, rank, size);
  local(comm, rank, size);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  CHECK(size_ <= 8);
  on_all_communicators(ALL_FORMS, everything);
  return finish();
}
