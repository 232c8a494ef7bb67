/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Derived datatypes: extents, envelopes, packing, and messages whose two sides describe the data differently.
 */
#include <stddef.h>

#include "check.h"

static MPI_Datatype committed(MPI_Datatype type) {
  MPI_Type_commit(&type);
  return type;
}

static void check_extent(MPI_Datatype type, int size, MPI_Aint lower, MPI_Aint extent, MPI_Aint true_lower,
                         MPI_Aint true_extent) {
  int actual;
  MPI_Aint a, b;
  MPI_Type_size(type, &actual);
  CHECK_EQ(actual, size);
  MPI_Type_get_extent(type, &a, &b);
  CHECK_EQ(a, lower);
  CHECK_EQ(b, extent);
  MPI_Type_get_true_extent(type, &a, &b);
  CHECK_EQ(a, true_lower);
  CHECK_EQ(b, true_extent);
}

struct record {
  char letter;
  double values[3];
  int number;
  short tail;
};

static MPI_Datatype record_type(void) {
  const int blocks[] = {1, 3, 1, 1};
  const MPI_Aint places[] = {offsetof(struct record, letter), offsetof(struct record, values),
                             offsetof(struct record, number), offsetof(struct record, tail)};
  const MPI_Datatype elements[] = {MPI_CHAR, MPI_DOUBLE, MPI_INT, MPI_SHORT};
  MPI_Datatype type;
  MPI_Type_create_struct(4, blocks, places, elements, &type);
  return committed(type);
}

static void extents(void) {
  MPI_Datatype type, inner, resized;
  check_extent(MPI_DOUBLE_INT, 12, 0, 16, 0, 12);
  check_extent(MPI_SHORT_INT, 6, 0, 8, 0, 8);
  check_extent(MPI_LONG_DOUBLE_INT, sizeof(long double) + 4, 0, 2 * sizeof(long double), 0, sizeof(long double) + 4);
  MPI_Type_contiguous(5, MPI_INT, &type);
  check_extent(type, 20, 0, 20, 0, 20);
  MPI_Type_free(&type);
  CHECK(type == MPI_DATATYPE_NULL);
  MPI_Type_vector(3, 2, 5, MPI_INT, &inner);
  check_extent(inner, 24, 0, 48, 0, 48);
  MPI_Type_create_hvector(2, 1, 100, inner, &type);
  check_extent(type, 48, 0, 148, 0, 148);
  MPI_Type_create_resized(inner, -8, 80, &resized);
  check_extent(resized, 24, -8, 80, 0, 48);
  MPI_Type_free(&inner);
  check_extent(type, 48, 0, 148, 0, 148); /* its constituent was freed, but lives on */
  MPI_Type_free(&type);
  MPI_Type_contiguous(3, resized, &type);
  check_extent(type, 72, -8, 240, 0, 208);
  MPI_Type_free(&type);
  MPI_Type_free(&resized);
  MPI_Type_vector(3, 1, -2, MPI_INT, &type);
  check_extent(type, 12, -16, 20, -16, 20);
  MPI_Type_free(&type);
  type = record_type();
  check_extent(type, 31, 0, sizeof(struct record), 0, 38);
  MPI_Type_free(&type);
  MPI_Type_contiguous(0, MPI_BYTE, &type);
  check_extent(type, 0, 0, 0, 0, 0);
  MPI_Type_free(&type);
}

static void envelopes(void) {
  MPI_Datatype inner, outer, child, copy;
  int integers, addresses, types, combiner, numbers[3];
  MPI_Aint places[1];
  MPI_Type_get_envelope(MPI_INT, &integers, &addresses, &types, &combiner);
  CHECK(combiner == MPI_COMBINER_NAMED && integers == 0 && addresses == 0 && types == 0);
  MPI_Type_vector(4, 2, 3, MPI_SHORT, &inner);
  MPI_Type_commit(&inner);
  MPI_Type_get_envelope(inner, &integers, &addresses, &types, &combiner);
  CHECK(combiner == MPI_COMBINER_VECTOR && integers == 3 && addresses == 0 && types == 1);
  MPI_Type_get_contents(inner, 3, 0, 1, numbers, NULL, &child);
  CHECK(numbers[0] == 4 && numbers[1] == 2 && numbers[2] == 3 && child == MPI_SHORT);
  MPI_Type_create_hvector(2, 1, 64, inner, &outer);
  MPI_Type_get_envelope(outer, &integers, &addresses, &types, &combiner);
  CHECK(combiner == MPI_COMBINER_HVECTOR && integers == 2 && addresses == 1 && types == 1);
  MPI_Type_get_contents(outer, 2, 1, 1, numbers, places, &child);
  CHECK(numbers[0] == 2 && numbers[1] == 1 && places[0] == 64);
  MPI_Type_get_envelope(child, &integers, &addresses, &types, &combiner);
  CHECK_EQ(combiner, MPI_COMBINER_VECTOR);
  MPI_Type_free(&child);
  MPI_Type_dup(outer, &copy);
  MPI_Type_get_envelope(copy, &integers, &addresses, &types, &combiner);
  CHECK_EQ(combiner, MPI_COMBINER_DUP);
  MPI_Type_free(&inner);
  MPI_Type_free(&outer);
  check_extent(copy, 32, 0, 86, 0, 86);
  MPI_Type_free(&copy);
}

static void names(void) {
  char name[MPI_MAX_OBJECT_NAME];
  int length;
  MPI_Type_get_name(MPI_DOUBLE, name, &length);
  CHECK(strcmp(name, "MPI_DOUBLE") == 0 && length == 10);
  MPI_Datatype type;
  MPI_Type_contiguous(3, MPI_INT, &type);
  MPI_Type_get_name(type, name, &length);
  CHECK_EQ(length, 0);
  MPI_Type_set_name(type, "triple");
  MPI_Type_get_name(type, name, &length);
  CHECK(strcmp(name, "triple") == 0 && length == 6);
  MPI_Type_free(&type);
}

/* A matrix's columns leave as a vector type and arrive as bytes, and the other way. */
static void columns(int rows) {
  const int next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_;
  const size_t cells = (size_t)rows * 7;
  double *matrix = malloc(cells * sizeof *matrix), *flat = malloc(cells * sizeof *flat);
  MPI_Datatype column, three;
  MPI_Type_vector(rows, 1, 7, MPI_DOUBLE, &column);
  MPI_Type_create_resized(column, 0, sizeof(double), &three);
  MPI_Type_commit(&three);
  for (size_t i = 0; i < cells; ++i) matrix[i] = rank_ * 1e6 + (double)i;
  MPI_Sendrecv(matrix + 2, 3, three, next, 1, flat, rows * 3, MPI_DOUBLE, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int c = 0; c < 3; ++c) {
    for (int r = 0; r < rows; ++r) CHECK(flat[c * rows + r] == before * 1e6 + r * 7 + 2 + c);
  }
  for (size_t i = 0; i < cells; ++i) matrix[i] = -1;
  MPI_Sendrecv(flat, rows * 3, MPI_DOUBLE, before, 2, matrix, 3, three, next, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  const int origin = (next + size_ - 1) % size_;
  for (int c = 0; c < 7; ++c) {
    for (int r = 0; r < rows; ++r) {
      const double expected = c < 3 ? origin * 1e6 + r * 7 + 2 + c : -1;
      CHECK(matrix[r * 7 + c] == expected);
    }
  }
  MPI_Type_free(&three);
  MPI_Type_free(&column);
  free(matrix);
  free(flat);
}

static void records(int count) {
  const int next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_;
  struct record *out = calloc((size_t)count, sizeof *out), *in = calloc((size_t)count, sizeof *in);
  MPI_Datatype type = record_type();
  for (int i = 0; i < count; ++i) {
    out[i].letter = (char)(i + rank_);
    out[i].values[0] = i;
    out[i].values[2] = rank_ + 0.5;
    out[i].number = i * 3;
    out[i].tail = (short)(i - 5);
  }
  MPI_Request request;
  MPI_Irecv(in, count, type, before, 8, MPI_COMM_WORLD, &request);
  MPI_Send(out, count, type, next, 8, MPI_COMM_WORLD);
  MPI_Type_free(&type); /* the receive is still pending, perhaps */
  MPI_Status status;
  MPI_Wait(&request, &status);
  type = record_type();
  int received;
  MPI_Get_count(&status, type, &received);
  CHECK_EQ(received, count);
  MPI_Type_free(&type);
  for (int i = 0; i < count; ++i) {
    CHECK(in[i].letter == (char)(i + before) && in[i].values[0] == i && in[i].values[1] == 0 &&
          in[i].values[2] == before + 0.5 && in[i].number == i * 3 && in[i].tail == (short)(i - 5));
  }
  free(out);
  free(in);
}

static void indexed(void) {
  const int blocks[] = {2, 0, 3, 1}, places[] = {4, 100, 9, 0};
  const MPI_Aint bytes[] = {16, 400, 36, 0};
  int memory[16], packed[6], back[16];
  for (int i = 0; i < 16; ++i) memory[i] = i;
  for (int by_bytes = 0; by_bytes < 2; ++by_bytes) {
    MPI_Datatype type;
    if (by_bytes) {
      MPI_Type_create_hindexed(4, blocks, bytes, MPI_INT, &type);
    } else {
      MPI_Type_indexed(4, blocks, places, MPI_INT, &type);
    }
    MPI_Type_commit(&type);
    MPI_Sendrecv(memory, 1, type, rank_, 0, packed, 6, MPI_INT, rank_, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const int expected[] = {4, 5, 9, 10, 11, 0};
    CHECK(memcmp(packed, expected, sizeof packed) == 0);
    memset(back, 0xff, sizeof back);
    MPI_Sendrecv(packed, 6, MPI_INT, rank_, 0, back, 1, type, rank_, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 16; ++i) {
      const int there = i == 0 || i == 4 || i == 5 || (i >= 9 && i <= 11);
      CHECK_EQ(back[i], there ? i : -1);
    }
    MPI_Type_free(&type);
  }
}

/* Blocks of equal lengths, described in four ways. */
static void equal_blocks(void) {
  const int lengths[] = {3, 3, 3}, places[] = {10, 0, 13};
  const MPI_Aint bytes[] = {40, 0, 52};
  int memory[20], expected[9], packed[9], numbers[5], integers, addresses, types, combiner, room = 0;
  MPI_Aint found[3];
  MPI_Datatype type, child;
  for (int i = 0; i < 20; ++i) memory[i] = i;
  MPI_Type_indexed(3, lengths, places, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Pack(memory, 1, type, expected, sizeof expected, &room, MPI_COMM_WORLD);
  MPI_Type_free(&type);
  for (int by_bytes = 0; by_bytes < 2; ++by_bytes) {
    if (by_bytes) {
      MPI_Type_create_hindexed_block(3, 3, bytes, MPI_INT, &type);
    } else {
      MPI_Type_create_indexed_block(3, 3, places, MPI_INT, &type);
    }
    MPI_Type_commit(&type);
    check_extent(type, 36, 0, 64, 0, 64);
    MPI_Sendrecv(memory, 1, type, rank_, 0, packed, 9, MPI_INT, rank_, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(memcmp(packed, expected, sizeof packed) == 0);
    MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    CHECK_EQ(combiner, by_bytes ? MPI_COMBINER_HINDEXED_BLOCK : MPI_COMBINER_INDEXED_BLOCK);
    CHECK(integers == (by_bytes ? 2 : 5) && addresses == (by_bytes ? 3 : 0) && types == 1);
    MPI_Type_get_contents(type, integers, addresses, 1, numbers, found, &child);
    CHECK(numbers[0] == 3 && numbers[1] == 3 && child == MPI_INT);
    for (int i = 0; i < 3; ++i) CHECK(by_bytes ? found[i] == bytes[i] : numbers[2 + i] == places[i]);
    MPI_Type_free(&type);
  }
  MPI_Type_create_indexed_block(0, 3, NULL, MPI_INT, &type);
  check_extent(type, 0, 0, 0, 0, 0);
  MPI_Type_free(&type);
}

/* Two blocks of an array of three dimensions, of elements of `element` bytes, in either order. */
static void subarray(int order, MPI_Datatype element, int bytes) {
  enum { A = 4, B = 5, C = 6, X = 2, Y = 3, Z = 4, BYTES = 12 };
  const int sizes[] = {A, B, C}, parts[] = {X, Y, Z}, starts[] = {1, 0, 2};
  static char array[2 * A * B * C * BYTES], packed[2 * X * Y * Z * BYTES], back[sizeof array], expected[sizeof array];
  const int whole = A * B * C * bytes, part = X * Y * Z * bytes;
  int numbers[11], integers, addresses, types, combiner, size;
  MPI_Datatype type, child;
  MPI_Type_create_subarray(3, sizes, parts, starts, order, element, &type);
  MPI_Type_commit(&type);
  MPI_Type_size(element, &size);
  MPI_Aint lower, extent;
  MPI_Type_get_extent(type, &lower, &extent);
  CHECK(lower == 0 && extent == whole);
  MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  CHECK(combiner == MPI_COMBINER_SUBARRAY && integers == 11 && addresses == 0 && types == 1);
  MPI_Type_get_contents(type, 11, 0, 1, numbers, NULL, &child);
  CHECK(numbers[0] == 3 && numbers[10] == order);
  for (int i = 0; i < 3; ++i)
    CHECK(numbers[1 + i] == sizes[i] && numbers[4 + i] == parts[i] && numbers[7 + i] == starts[i]);
  fill(array, sizeof array, 3);
  memset(back, 0, sizeof back);
  memset(expected, 0, sizeof expected);
  char *to = packed;
  /* The first index is the outer one in C, the inner one in Fortran. */
  for (int n = 0; n < 2 * X * Y * Z; ++n) {
    const int which = n / (X * Y * Z), k = n % (X * Y * Z);
    const int x = order == MPI_ORDER_C ? k / (Y * Z) : k % X, y = order == MPI_ORDER_C ? k / Z % Y : k / X % Y;
    const int z = order == MPI_ORDER_C ? k % Z : k / (X * Y), a = x + 1, b = y, c = z + 2;
    const int at = order == MPI_ORDER_C ? (a * B + b) * C + c : (c * B + b) * A + a;
    for (int i = 0; i < size / 4; ++i, to += 4) { /* every second number of the element */
      memcpy(to, array + which * whole + at * bytes + 8 * i, 4);
      memcpy(expected + which * whole + at * bytes + 8 * i, to, 4);
    }
  }
  static char sent[sizeof packed];
  int position = 0;
  MPI_Pack(array, 2, type, sent, sizeof sent, &position, MPI_COMM_WORLD);
  CHECK_EQ(position, 2 * part / bytes * size);
  CHECK(memcmp(sent, packed, (size_t)position) == 0);
  const int next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_;
  MPI_Sendrecv(array, 2, type, next, 0, back, 2, type, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK(memcmp(back, expected, sizeof back) == 0);
  MPI_Type_free(&type);
}

static void subarrays(void) {
  const int size = 10, part = 4, start = 3, everything = 10, zero = 0;
  MPI_Datatype type, two_of_three;
  MPI_Type_create_subarray(1, &size, &part, &start, MPI_ORDER_C, MPI_INT, &type);
  check_extent(type, 16, 0, 40, 12, 16);
  MPI_Type_free(&type);
  MPI_Type_create_subarray(1, &size, &everything, &zero, MPI_ORDER_FORTRAN, MPI_INT, &type);
  check_extent(type, 40, 0, 40, 0, 40);
  MPI_Type_free(&type);
  MPI_Type_vector(2, 1, 2, MPI_INT, &two_of_three);
  subarray(MPI_ORDER_C, MPI_INT, 4);
  subarray(MPI_ORDER_FORTRAN, MPI_INT, 4);
  subarray(MPI_ORDER_C, two_of_three, 12);
  subarray(MPI_ORDER_FORTRAN, two_of_three, 12);
  MPI_Type_free(&two_of_three);
}

#ifndef OPEN_MPI
static void wrong_arguments(void) {
  const int size = 10, part = 4, start = 3, none = 0, minus = -1, large = 11, far = 7, places[] = {0, 5};
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK_EQ(class_of(MPI_Type_create_subarray(0, &size, &part, &start, MPI_ORDER_C, MPI_INT, &type)), MPI_ERR_ARG);
  CHECK_EQ(class_of(MPI_Type_create_subarray(1, &none, &part, &start, MPI_ORDER_C, MPI_INT, &type)), MPI_ERR_ARG);
  CHECK_EQ(class_of(MPI_Type_create_subarray(1, &size, &none, &start, MPI_ORDER_C, MPI_INT, &type)), MPI_ERR_ARG);
  CHECK_EQ(class_of(MPI_Type_create_subarray(1, &size, &large, &none, MPI_ORDER_C, MPI_INT, &type)), MPI_ERR_ARG);
  CHECK_EQ(class_of(MPI_Type_create_subarray(1, &size, &part, &minus, MPI_ORDER_C, MPI_INT, &type)), MPI_ERR_ARG);
  CHECK_EQ(class_of(MPI_Type_create_subarray(1, &size, &part, &far, MPI_ORDER_C, MPI_INT, &type)), MPI_ERR_ARG);
  CHECK_EQ(class_of(MPI_Type_create_subarray(1, &size, &part, &start, -5, MPI_INT, &type)), MPI_ERR_ARG);
  CHECK_EQ(class_of(MPI_Type_create_subarray(1, &size, &part, &start, MPI_ORDER_C, MPI_DATATYPE_NULL, &type)),
           MPI_ERR_TYPE);
  CHECK_EQ(class_of(MPI_Type_create_indexed_block(-1, 2, places, MPI_INT, &type)), MPI_ERR_COUNT);
  CHECK_EQ(class_of(MPI_Type_create_indexed_block(2, -2, places, MPI_INT, &type)), MPI_ERR_ARG);
  CHECK_EQ(class_of(MPI_Type_create_indexed_block(2, 2, places, MPI_DATATYPE_NULL, &type)), MPI_ERR_TYPE);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  CHECK(type == MPI_DATATYPE_NULL);
}
#endif

static void packing(void) {
  char buffer[256];
  int position = 0, room, numbers[3] = {1, 2, 3}, back[3] = {0};
  struct record out = {'x', {1, 2, 3}, 4, 5}, in;
  MPI_Datatype type = record_type();
  MPI_Pack_size(3, MPI_INT, MPI_COMM_WORLD, &room);
  CHECK(room >= 12);
  MPI_Pack(numbers, 3, MPI_INT, buffer, sizeof buffer, &position, MPI_COMM_WORLD);
  MPI_Pack(&out, 1, type, buffer, sizeof buffer, &position, MPI_COMM_WORLD);
  CHECK_EQ(position, 12 + 31);
  MPI_Sendrecv(buffer, position, MPI_PACKED, (rank_ + 1) % size_, 0, buffer + 100, 100, MPI_PACKED, MPI_ANY_SOURCE, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  memset(&in, 0, sizeof in);
  position = 0;
  MPI_Unpack(buffer + 100, 100, &position, back, 3, MPI_INT, MPI_COMM_WORLD);
  MPI_Unpack(buffer + 100, 100, &position, &in, 1, type, MPI_COMM_WORLD);
  CHECK(back[0] == 1 && back[2] == 3 && in.letter == 'x' && in.values[2] == 3 && in.number == 4 && in.tail == 5);
  MPI_Type_free(&type);
}

/* Addresses relative to MPI_BOTTOM. */
static void absolute(void) {
  int a = rank_, b = 0;
  MPI_Aint place;
  const int one = 1;
  MPI_Datatype integer = MPI_INT, type;
  MPI_Get_address(&a, &place);
  MPI_Type_create_struct(1, &one, &place, &integer, &type);
  MPI_Type_commit(&type);
  MPI_Sendrecv(MPI_BOTTOM, 1, type, (rank_ + 1) % size_, 0, &b, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  CHECK_EQ(b, (rank_ + size_ - 1) % size_);
  MPI_Type_free(&type);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  extents();
  envelopes();
  names();
  columns(3);
  columns(500);
  columns(40000);
  records(1);
  records(20000);
  indexed();
  equal_blocks();
  subarrays();
#ifndef OPEN_MPI /* 4.1 takes an array of no dimensions */
  wrong_arguments();
#endif
  packing();
  absolute();
  return finish();
}
