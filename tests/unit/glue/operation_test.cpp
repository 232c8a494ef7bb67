// SPDX-License-Identifier: BSD-3-Clause
//
// Reduction operators.
#include "starpu_glue/mpi/datatypes/operation.hpp"

#include <gtest/gtest.h>

#include <complex>
#include <vector>

namespace {

using canele::mpi::find_type;
using canele::mpi::get_operator;
using canele::mpi::Operator;

template <class T>
T once(MPI_Op op, MPI_Datatype type, T a, T b) {
  Operator found;
  EXPECT_EQ(get_operator(op, *find_type(type), &found), MPI_SUCCESS);
  found.apply(&a, &b, 1, *find_type(type));
  return b;
}

int code_for(MPI_Op op, MPI_Datatype type) {
  Operator found;
  return get_operator(op, *find_type(type), &found);
}

TEST(Operation, Arithmetic) {
  EXPECT_EQ(once(MPI_SUM, MPI_INT, 3, 4), 7);
  EXPECT_EQ(once(MPI_PROD, MPI_DOUBLE, 3.0, 4.0), 12.0);
  EXPECT_EQ(once(MPI_MIN, MPI_LONG, -3L, 4L), -3L);
  EXPECT_EQ(once(MPI_MAX, MPI_UINT64_T, std::uint64_t{1} << 63, std::uint64_t{4}), std::uint64_t{1} << 63);
  EXPECT_EQ(once(MPI_MIN, MPI_INT8_T, std::int8_t{-1}, std::int8_t{1}), -1);
  EXPECT_EQ(once(MPI_SUM, MPI_LONG_DOUBLE, 0.5L, 0.25L), 0.75L);
  using Complex = std::complex<double>;
  EXPECT_EQ(once(MPI_PROD, MPI_C_DOUBLE_COMPLEX, Complex(0, 1), Complex(0, 1)), Complex(-1, 0));
}

TEST(Operation, IntegersWrapRound) {
  EXPECT_EQ(once(MPI_SUM, MPI_INT, 2147483647, 1), -2147483647 - 1);
  EXPECT_EQ(once<std::uint16_t>(MPI_PROD, MPI_UINT16_T, 65535, 65535), 1);
}

TEST(Operation, LogicAndBits) {
  EXPECT_EQ(once(MPI_LAND, MPI_INT, 2, 4), 1);
  EXPECT_EQ(once(MPI_LOR, MPI_INT, 0, 0), 0);
  EXPECT_EQ(once(MPI_LXOR, MPI_INT, 2, 4), 0);
  EXPECT_EQ(once(MPI_LXOR, MPI_C_BOOL, true, false), true);
  EXPECT_EQ(once(MPI_BAND, MPI_UNSIGNED, 0xf0u, 0x3cu), 0x30u);
  EXPECT_EQ(once<unsigned char>(MPI_BXOR, MPI_BYTE, 0xff, 0x0f), 0xf0);
  EXPECT_EQ(once(MPI_BOR, MPI_LONG_LONG, 1LL, 4LL), 5LL);
}

TEST(Operation, Locations) {
  struct Pair {
    double value;
    int index;
  };
  const Pair low = once(MPI_MINLOC, MPI_DOUBLE_INT, Pair{1.5, 7}, Pair{2.5, 3});
  EXPECT_EQ(low.value, 1.5);
  EXPECT_EQ(low.index, 7);
  EXPECT_EQ(once(MPI_MAXLOC, MPI_DOUBLE_INT, Pair{1.5, 7}, Pair{1.5, 3}).index, 3);
  EXPECT_EQ(once(MPI_MINLOC, MPI_DOUBLE_INT, Pair{1.5, 2}, Pair{1.5, 3}).index, 2);
}

TEST(Operation, TakesAByteForAnUnsignedChar) {
  EXPECT_EQ(once<unsigned char>(MPI_SUM, MPI_BYTE, 200, 100), 44);
  EXPECT_EQ(once<unsigned char>(MPI_MAX, MPI_BYTE, 200, 100), 200);
  EXPECT_EQ(once<unsigned char>(MPI_MIN, MPI_BYTE, 200, 100), 100);
  EXPECT_EQ(once<unsigned char>(MPI_LAND, MPI_BYTE, 200, 0), 0);
  EXPECT_EQ(code_for(MPI_MINLOC, MPI_BYTE), MPI_ERR_OP);
}

TEST(Operation, RejectsWhatMpiDoesNotAllow) {
  EXPECT_EQ(code_for(MPI_BAND, MPI_DOUBLE), MPI_ERR_OP);
  EXPECT_EQ(code_for(MPI_LAND, MPI_FLOAT), MPI_ERR_OP);
  EXPECT_EQ(code_for(MPI_BAND, MPI_C_BOOL), MPI_ERR_OP);
  EXPECT_EQ(code_for(MPI_SUM, MPI_C_BOOL), MPI_ERR_OP);
  EXPECT_EQ(code_for(MPI_SUM, MPI_PACKED), MPI_ERR_OP);
  EXPECT_EQ(code_for(MPI_MAX, MPI_C_FLOAT_COMPLEX), MPI_ERR_OP);
  EXPECT_EQ(code_for(MPI_SUM, MPI_2INT), MPI_ERR_OP);
  EXPECT_EQ(code_for(MPI_MINLOC, MPI_INT), MPI_ERR_OP);
  EXPECT_EQ(code_for(MPI_OP_NULL, MPI_INT), MPI_ERR_OP);
  EXPECT_EQ(code_for(reinterpret_cast<MPI_Op>(MPI_INT), MPI_INT), MPI_ERR_OP);
}

void subtract(void* in, void* inout, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) static_cast<int*>(inout)[i] = static_cast<int*>(in)[i] - static_cast<int*>(inout)[i];
}

TEST(Operation, UsersOperatorGetsTheLeftOperandFirst) {
  MPI_Op op = MPI_OP_NULL;
  ASSERT_EQ(canele::mpi::new_operator(subtract, false, &op), MPI_SUCCESS);
  EXPECT_EQ(once(op, MPI_INT, 10, 3), 7);
  bool commutes = true;
  EXPECT_EQ(canele::mpi::is_commutative(op, &commutes), MPI_SUCCESS);
  EXPECT_FALSE(commutes);
  MPI_Op stale = op;
  EXPECT_EQ(canele::mpi::free_operator(&op), MPI_SUCCESS);
  EXPECT_EQ(op, MPI_OP_NULL);
  EXPECT_EQ(code_for(stale, MPI_INT), MPI_ERR_OP);
  EXPECT_EQ(canele::mpi::free_operator(&stale), MPI_ERR_OP);
  EXPECT_EQ(canele::mpi::is_commutative(stale, &commutes), MPI_ERR_OP);
  EXPECT_EQ(canele::mpi::is_commutative(MPI_SUM, &commutes), MPI_SUCCESS);
  EXPECT_TRUE(commutes);
  MPI_Op predefined = MPI_SUM;
  EXPECT_EQ(canele::mpi::free_operator(&predefined), MPI_ERR_OP);
}

}  // namespace
