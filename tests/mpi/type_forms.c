/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Forms of the datatype functions: for large counts, of MPI-1, and those that find a predefined type.
 */
#include <limits.h>
#include <stddef.h>

#include "check.h"

#ifdef CANELE_MPI
#include "mpi1.h"
#endif

static const MPI_Count huge = (MPI_Count)1 << 40;

/* Checks size, lower bound and extent. */
static void check_size(MPI_Datatype type, MPI_Count size, MPI_Count lower, MPI_Count extent) {
  MPI_Count actual, a, b;
  MPI_Aint c, d;
  int small;
  MPI_Type_size_c(type, &actual);
  CHECK_EQ(actual, size);
  MPI_Type_size_x(type, &actual);
  CHECK_EQ(actual, size);
  MPI_Type_size(type, &small);
  CHECK_EQ(small, size > INT_MAX ? MPI_UNDEFINED : size);
  MPI_Type_get_extent_c(type, &a, &b);
  CHECK(a == lower && b == extent);
  MPI_Type_get_extent_x(type, &a, &b);
  CHECK(a == lower && b == extent);
  MPI_Type_get_extent(type, &c, &d);
  CHECK(c == lower && d == extent);
}

/* Checks the arguments that a type tells, and frees it. Those of a form for large counts cannot be told as ints. */
static void check_contents(MPI_Datatype type, int combiner, const int integers[2], MPI_Count count_of_counts,
                           const MPI_Count counts[]) {
  MPI_Count numbers[4];
  int found[16], ignored[4];
  MPI_Aint addresses[16];
  MPI_Count large[16];
  MPI_Datatype types[4];
  CHECK_EQ(MPI_Type_get_envelope_c(type, &numbers[0], &numbers[1], &numbers[2], &numbers[3], &ignored[0]), MPI_SUCCESS);
  CHECK_EQ(ignored[0], combiner);
  CHECK_EQ(numbers[0], integers == NULL ? 0 : 2);
  CHECK_EQ(numbers[1], 0);
  CHECK_EQ(numbers[2], count_of_counts);
  CHECK_EQ(MPI_Type_get_contents_c(type, 16, 16, 16, 4, found, addresses, large, types), MPI_SUCCESS);
  for (int i = 0; integers != NULL && i < 2; ++i) CHECK_EQ(found[i], integers[i]);
  for (MPI_Count i = 0; i < count_of_counts; ++i) CHECK_EQ(large[i], counts[i]);
  CHECK(types[0] == MPI_INT);
#ifdef CANELE_MPI
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const MPI_Count too_few = count_of_counts - 1;
  CHECK_EQ(class_of(MPI_Type_get_contents_c(type, 16, 16, too_few, 4, found, addresses, large, types)), MPI_ERR_ARG);
  CHECK_EQ(class_of(MPI_Type_get_envelope(type, &ignored[0], &ignored[1], &ignored[2], &ignored[3])), MPI_ERR_TYPE);
  CHECK_EQ(class_of(MPI_Type_get_contents(type, 16, 16, 4, found, addresses, types)), MPI_ERR_TYPE);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
#endif
  MPI_Type_free(&type);
}

static void large_types(void) {
  MPI_Datatype type;
  MPI_Type_contiguous_c(huge, MPI_INT, &type);
  check_size(type, 4 * huge, 0, 4 * huge);
  check_contents(type, MPI_COMBINER_CONTIGUOUS, NULL, 1, (MPI_Count[]){huge});
  MPI_Type_vector_c(huge, 2, 3, MPI_INT, &type);
  check_size(type, 8 * huge, 0, 12 * huge - 4);
  check_contents(type, MPI_COMBINER_VECTOR, NULL, 3, (MPI_Count[]){huge, 2, 3});
  MPI_Type_create_hvector_c(3, huge, 8 * huge, MPI_INT, &type);
  check_size(type, 12 * huge, 0, 20 * huge);
  check_contents(type, MPI_COMBINER_HVECTOR, NULL, 3, (MPI_Count[]){3, huge, 8 * huge});
  MPI_Type_create_resized_c(MPI_INT, -huge, 3 * huge, &type);
  check_size(type, 4, -huge, 3 * huge);
  check_contents(type, MPI_COMBINER_RESIZED, NULL, 2, (MPI_Count[]){-huge, 3 * huge});
  const MPI_Count sizes[] = {huge, 10}, parts[] = {huge - 1, 5}, starts[] = {1, 5};
  MPI_Type_create_subarray_c(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type);
  check_size(type, 20 * (huge - 1), 0, 40 * huge);
  check_contents(type, MPI_COMBINER_SUBARRAY, (int[]){2, MPI_ORDER_C}, 6, (MPI_Count[]){huge, 10, huge - 1, 5, 1, 5});
}

static void large_lists(void) {
  const MPI_Count lengths[] = {huge, 2}, places[] = {0, 2 * huge}, bytes[] = {0, 8 * huge};
  const MPI_Datatype ints[] = {MPI_INT, MPI_INT};
  MPI_Datatype type;
  MPI_Type_indexed_c(2, lengths, places, MPI_INT, &type);
  check_size(type, 4 * huge + 8, 0, 8 * huge + 8);
  check_contents(type, MPI_COMBINER_INDEXED, NULL, 5, (MPI_Count[]){2, huge, 2, 0, 2 * huge});
  MPI_Type_create_hindexed_c(2, lengths, bytes, MPI_INT, &type);
  check_size(type, 4 * huge + 8, 0, 8 * huge + 8);
  check_contents(type, MPI_COMBINER_HINDEXED, NULL, 5, (MPI_Count[]){2, huge, 2, 0, 8 * huge});
  MPI_Type_create_indexed_block_c(2, huge, places, MPI_INT, &type);
  check_size(type, 8 * huge, 0, 12 * huge);
  check_contents(type, MPI_COMBINER_INDEXED_BLOCK, NULL, 4, (MPI_Count[]){2, huge, 0, 2 * huge});
  MPI_Type_create_hindexed_block_c(2, 3, bytes, MPI_INT, &type);
  check_size(type, 24, 0, 8 * huge + 12);
  check_contents(type, MPI_COMBINER_HINDEXED_BLOCK, NULL, 4, (MPI_Count[]){2, 3, 0, 8 * huge});
  MPI_Type_create_struct_c(2, lengths, bytes, ints, &type);
  check_size(type, 4 * huge + 8, 0, 8 * huge + 8);
  check_contents(type, MPI_COMBINER_STRUCT, NULL, 5, (MPI_Count[]){2, huge, 2, 0, 8 * huge});
}

/* A block without elements may lie anywhere. */
static void empty_blocks(void) {
  const MPI_Count lengths[] = {0, 4, 0}, places[] = {LLONG_MAX, 2, LLONG_MIN};
  MPI_Datatype type;
  MPI_Type_indexed_c(3, lengths, places, MPI_INT, &type);
  check_size(type, 16, 8, 16);
  MPI_Type_free(&type);
  MPI_Type_create_indexed_block_c(3, 0, places, MPI_INT, &type);
  check_size(type, 0, 0, 0);
  MPI_Type_free(&type);
}

#ifdef CANELE_MPI
/* What does not fit into 63 bits is an error, and no number wraps. */
static void too_large(void) {
  const MPI_Count most = LLONG_MAX, half = (MPI_Count)1 << 62, far[] = {0, half}, near_end[] = {most, 0};
  const MPI_Count ones[] = {1, 1}, sizes[] = {huge, huge}, none[] = {0, 0};
  MPI_Count size;
  MPI_Datatype type = MPI_DATATYPE_NULL, large;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK_EQ(class_of(MPI_Type_contiguous_c(half, MPI_INT, &type)), MPI_ERR_COUNT);
  CHECK_EQ(class_of(MPI_Type_contiguous_c(-1, MPI_INT, &type)), MPI_ERR_COUNT);
  CHECK_EQ(class_of(MPI_Type_vector_c(huge, huge, 1, MPI_BYTE, &type)), MPI_ERR_COUNT);
  CHECK_EQ(class_of(MPI_Type_vector_c(3, 1, half, MPI_INT, &type)), MPI_ERR_COUNT);
  CHECK_EQ(class_of(MPI_Type_create_hvector_c(3, 1, half, MPI_INT, &type)), MPI_ERR_COUNT);
  CHECK_EQ(class_of(MPI_Type_create_hvector_c(3, 1, -half, MPI_INT, &type)), MPI_ERR_COUNT);
  CHECK_EQ(class_of(MPI_Type_indexed_c(2, ones, far, MPI_INT, &type)), MPI_ERR_COUNT);
  CHECK_EQ(class_of(MPI_Type_create_hindexed_c(2, ones, near_end, MPI_INT, &type)), MPI_ERR_COUNT);
  CHECK_EQ(class_of(MPI_Type_create_hindexed_c(2, (MPI_Count[]){half, half}, none, MPI_BYTE, &type)), MPI_ERR_COUNT);
  CHECK_EQ(class_of(MPI_Type_create_indexed_block_c(2, 1, far, MPI_INT, &type)), MPI_ERR_COUNT);
  CHECK_EQ(class_of(MPI_Type_create_resized_c(MPI_INT, most, 1, &type)), MPI_ERR_COUNT);
  CHECK_EQ(class_of(MPI_Type_create_subarray_c(2, sizes, ones, none, MPI_ORDER_C, MPI_INT, &type)), MPI_ERR_COUNT);
  CHECK(type == MPI_DATATYPE_NULL);
  MPI_Type_contiguous_c(half, MPI_BYTE, &large);
  CHECK_EQ(class_of(MPI_Pack_size_c(2, large, MPI_COMM_WORLD, &size)), MPI_ERR_COUNT);
  CHECK_EQ(class_of(MPI_Pack_external_size_c("external32", 2, large, &size)), MPI_ERR_COUNT);
  MPI_Count position = 0;
  char byte = 0;
  CHECK_EQ(class_of(MPI_Pack_c(&byte, 4, large, &byte, 1, &position, MPI_COMM_WORLD)), MPI_ERR_COUNT);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Type_free(&large);
}
#endif

/* Packs by one form and unpacks by the other, behind each other. */
static void packing(void) {
  const int numbers[3] = {1, 2, 3};
  int back[3] = {0}, position = 0, size;
  char packed[64];
  MPI_Count large_position = 4, large_size;
  MPI_Datatype large;
  MPI_Pack_c(numbers, 2, MPI_INT, packed, sizeof packed, &large_position, MPI_COMM_WORLD);
  CHECK_EQ(large_position, 12);
  position = (int)large_position;
  MPI_Pack(numbers + 2, 1, MPI_INT, packed, sizeof packed, &position, MPI_COMM_WORLD);
  CHECK_EQ(position, 16);
  large_position = 4;
  MPI_Unpack_c(packed, sizeof packed, &large_position, back, 3, MPI_INT, MPI_COMM_WORLD);
  CHECK(large_position == 16 && back[0] == 1 && back[1] == 2 && back[2] == 3);
  MPI_Type_contiguous_c(huge, MPI_BYTE, &large);
  MPI_Type_commit(&large);
  MPI_Pack_size_c(3, large, MPI_COMM_WORLD, &large_size);
  CHECK_EQ(large_size, 3 * huge);
  MPI_Pack_size(3, large, MPI_COMM_WORLD, &size);
  CHECK_EQ(size, MPI_UNDEFINED);
  MPI_Type_free(&large);
}

#ifdef CANELE_MPI
static void of_mpi_1(void) {
  struct {
    char letter;
    int numbers[2];
  } one = {'a', {1, 2}};
  const int lengths[] = {1, 2};
  const MPI_Datatype types[] = {MPI_CHAR, MPI_INT};
  MPI_Aint places[2], from, value;
  MPI_Datatype type;
  MPI_Address(&one, &from);
  MPI_Address(one.numbers, &places[1]);
  places[1] -= from;
  places[0] = 0;
  CHECK_EQ(places[1], 4);
  MPI_Type_struct(2, lengths, places, types, &type);
  MPI_Type_extent(type, &value);
  CHECK_EQ(value, sizeof one);
  MPI_Type_free(&type);
  MPI_Type_hindexed(2, lengths, places, MPI_INT, &type);
  MPI_Type_ub(type, &value);
  CHECK_EQ(value, 12);
  MPI_Type_free(&type);
  MPI_Type_hvector(3, 1, -8, MPI_INT, &type);
  MPI_Type_lb(type, &value);
  CHECK_EQ(value, -16);
  MPI_Type_ub(type, &value);
  CHECK_EQ(value, 4);
  MPI_Type_free(&type);
}
#endif

static void matched(void) {
  MPI_Datatype type;
  int size;
  MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &type);
  CHECK(type == MPI_REAL8);
  MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 4, &type);
  CHECK(type == MPI_INTEGER4);
  MPI_Type_match_size(MPI_TYPECLASS_COMPLEX, 16, &type);
  MPI_Type_size(type, &size);
  CHECK_EQ(size, 16);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK_EQ(class_of(MPI_Type_match_size(MPI_TYPECLASS_REAL, 7, &type)), MPI_ERR_ARG);
  CHECK_EQ(class_of(MPI_Type_match_size(-5, 8, &type)), MPI_ERR_ARG);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
#ifdef CANELE_MPI
  MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &type);
  CHECK(type == MPI_DOUBLE_INT);
  MPI_Type_get_value_index(MPI_INT, MPI_INT, &type);
  CHECK(type == MPI_2INT);
  MPI_Type_get_value_index(MPI_INT, MPI_DOUBLE, &type);
  CHECK(type == MPI_DATATYPE_NULL);
#endif
}

/* Types by their digits: of the size that Fortran has, one for each pair of arguments, with the arguments to tell. */
static void by_digits(void) {
  MPI_Datatype type, again, other;
  int size, integers, addresses, types, combiner, numbers[2];
  MPI_Type_create_f90_real(15, 307, &type);
  MPI_Type_create_f90_real(15, 307, &again);
  MPI_Type_create_f90_real(15, MPI_UNDEFINED, &other);
  MPI_Type_size(type, &size);
  CHECK(type == again && type != other && size == 8);
  MPI_Type_get_envelope(other, &integers, &addresses, &types, &combiner);
  CHECK(combiner == MPI_COMBINER_F90_REAL && integers == 2 && addresses == 0 && types == 0);
  MPI_Type_get_contents(other, 2, 0, 0, numbers, NULL, NULL);
  CHECK(numbers[0] == 15 && numbers[1] == MPI_UNDEFINED);
  MPI_Type_create_f90_complex(6, 37, &type);
  MPI_Type_size(type, &size);
  CHECK_EQ(size, 8);
  const struct {
    int range, size;
  } integer_sizes[] = {{1, 1}, {2, 1}, {3, 2}, {4, 2}, {5, 4}, {9, 4}, {10, 8}, {18, 8}};
  for (size_t i = 0; i < sizeof integer_sizes / sizeof *integer_sizes; ++i) {
    MPI_Type_create_f90_integer(integer_sizes[i].range, &type);
    MPI_Type_size(type, &size);
    CHECK_EQ(size, integer_sizes[i].size);
  }
  MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  CHECK(combiner == MPI_COMBINER_F90_INTEGER && integers == 1);
  MPI_Type_get_contents(type, 1, 0, 0, numbers, NULL, NULL);
  CHECK_EQ(numbers[0], 18);
  int64_t value = rank_, sum = -1;
  MPI_Allreduce(&value, &sum, 1, type, MPI_SUM, MPI_COMM_WORLD);
  CHECK_EQ(sum, size_ * (size_ - 1) / 2);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
#ifdef CANELE_MPI
  CHECK_EQ(class_of(MPI_Type_free(&type)), MPI_ERR_TYPE);
  CHECK_EQ(class_of(MPI_Type_create_f90_real(MPI_UNDEFINED, MPI_UNDEFINED, &type)), MPI_ERR_ARG);
  CHECK_EQ(class_of(MPI_Type_create_f90_real(40, 10, &type)), MPI_ERR_ARG);
  CHECK_EQ(class_of(MPI_Type_create_f90_complex(5, 9999, &type)), MPI_ERR_ARG);
  CHECK_EQ(class_of(MPI_Type_create_f90_integer(39, &type)), MPI_ERR_ARG);
#endif
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  large_types();
  large_lists();
  empty_blocks();
  packing();
  matched();
  by_digits();
#ifdef CANELE_MPI
  too_large();
  of_mpi_1();
#endif
  return finish();
}
