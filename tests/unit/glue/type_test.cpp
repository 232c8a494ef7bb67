// SPDX-License-Identifier: BSD-3-Clause
//
// Datatypes one by one: what merges, extents, contents, references, errors.
#include "starpu_glue/mpi/datatypes/type.hpp"

#include <gtest/gtest.h>

#include <climits>
#include <span>
#include <vector>

namespace {

using canele::mpi::drop_reference;
using canele::mpi::find_type;
using canele::mpi::Payload;
using canele::mpi::Type;

Type& named(MPI_Datatype handle) { return *find_type(handle); }

/// Frees the type at the end of the test.
struct Owned {
  Type* type = nullptr;
  ~Owned() {
    if (type != nullptr) drop_reference(*type);
  }
  Type* operator->() const { return type; }
  Type& operator*() const { return *type; }
};

int count_pieces(const Type& type, std::size_t count = 1) {
  std::vector<struct iovec> pieces(64);
  static char memory[1 << 16];
  return Payload(memory + sizeof memory / 2, count, type).pieces(0, pieces.data(), 64);
}

TEST(Type, PredefinedOnesMatchTheLanguage) {
  EXPECT_EQ(named(MPI_INT).size, sizeof(int));
  EXPECT_EQ(named(MPI_LONG_DOUBLE).extent(), static_cast<std::ptrdiff_t>(sizeof(long double)));
  EXPECT_EQ(named(MPI_C_BOOL).size, 1u);
  EXPECT_EQ(named(MPI_DOUBLE_INT).size, 12u);
  EXPECT_EQ(named(MPI_DOUBLE_INT).extent(), 16);
  EXPECT_STREQ(named(MPI_2INT).fixed_name, "MPI_2INT");
  EXPECT_EQ(find_type(MPI_DATATYPE_NULL), nullptr);
  EXPECT_EQ(find_type(reinterpret_cast<MPI_Datatype>(MPI_COMM_WORLD)), nullptr);
}

TEST(Type, WhatIsContiguousBecomesOneBlock) {
  Owned row, all, tight, nested, list;
  ASSERT_EQ(canele::mpi::make_contiguous(10, named(MPI_DOUBLE), &row.type), MPI_SUCCESS);
  ASSERT_EQ(canele::mpi::make_contiguous(7, *row, &all.type), MPI_SUCCESS);
  ASSERT_EQ(canele::mpi::make_vector(4, 8, 8, false, named(MPI_BYTE), &tight.type), MPI_SUCCESS);
  ASSERT_EQ(canele::mpi::make_vector(5, 1, 32, true, *tight, &nested.type), MPI_SUCCESS);
  const int blocks[] = {2, 3, 1};
  const int places[] = {0, 2, 5};
  ASSERT_EQ(canele::mpi::make_indexed(blocks, places, named(MPI_INT), &list.type), MPI_SUCCESS);
  for (const Owned* type : {&row, &all, &tight, &nested, &list}) {
    EXPECT_TRUE((*type)->single.contiguous());
    EXPECT_EQ((*type)->single.block, (*type)->size);
    EXPECT_TRUE(Payload(nullptr, 3, **type).contiguous());
  }
  EXPECT_EQ(all->size, 560u);
  EXPECT_EQ(nested->size, 160u);
}

TEST(Type, AMatrixIsOneRunWhateverItsSize) {
  Owned matrix, block;
  ASSERT_EQ(canele::mpi::make_vector(1 << 20, 24, 64, false, named(MPI_BYTE), &matrix.type), MPI_SUCCESS);
  EXPECT_EQ(matrix->runs().size(), 1u);
  EXPECT_EQ(matrix->single.count, std::size_t{1} << 20);
  // StarPU's three-dimensional block: hvector of vector; layers that follow on each other make one longer run.
  ASSERT_EQ(canele::mpi::make_vector(3, 1, std::ptrdiff_t{64} << 20, true, *matrix, &block.type), MPI_SUCCESS);
  EXPECT_EQ(block->runs().size(), 1u);
  EXPECT_EQ(block->single.child, nullptr);
  EXPECT_EQ(block->single.count, std::size_t{3} << 20);
}

TEST(Type, EqualBlocksAtEqualDistancesAreOneRun) {
  Owned list;
  const std::vector<int> blocks(1000, 4);
  std::vector<MPI_Aint> places;
  for (int i = 0; i < 1000; ++i) places.push_back(i * 100);
  ASSERT_EQ(canele::mpi::make_hindexed(blocks, places, named(MPI_BYTE), &list.type), MPI_SUCCESS);
  EXPECT_EQ(list->runs().size(), 1u);
  EXPECT_EQ(list->single.count, 1000u);
}

/// Windows make one operation of such data.
TEST(Type, APatternIsKnownWithoutASearch) {
  const auto is_regular = [](const Type& type, std::size_t count) {
    return Payload(nullptr, count, type).layout.regular();
  };
  Owned column, columns, block, cube, apart;
  ASSERT_EQ(canele::mpi::make_vector(10, 1, 4, false, named(MPI_INT), &column.type), MPI_SUCCESS);
  EXPECT_TRUE(is_regular(*column, 1));
  EXPECT_FALSE(is_regular(*column, 2)) << "the second begins where the last block ends";
  ASSERT_EQ(canele::mpi::make_resized(*column, 0, 160, &columns.type), MPI_SUCCESS);
  EXPECT_TRUE(is_regular(*columns, 2)) << "the second goes on with the pattern";
  const int sizes[] = {6, 8, 9}, part[] = {2, 3, 4}, start[] = {1, 2, 3};
  const std::span matrix(sizes, 2), of_matrix(part, 2), from(start, 2);
  ASSERT_EQ(canele::mpi::make_subarray({matrix, of_matrix, from, MPI_ORDER_C}, named(MPI_INT), &block.type),
            MPI_SUCCESS);
  EXPECT_TRUE(is_regular(*block, 1));
  ASSERT_EQ(canele::mpi::make_subarray({sizes, part, start, MPI_ORDER_C}, named(MPI_INT), &cube.type), MPI_SUCCESS);
  EXPECT_FALSE(is_regular(*cube, 1));
  const int places[] = {0, 3, 7};
  ASSERT_EQ(canele::mpi::make_indexed_block(places, 2, named(MPI_INT), &apart.type), MPI_SUCCESS);
  EXPECT_FALSE(is_regular(*apart, 1));
  EXPECT_TRUE(is_regular(named(MPI_DOUBLE_INT), 2)) << "with padding between";
  EXPECT_FALSE(is_regular(named(MPI_INT), 2)) << "one block";
}

TEST(Type, ZeroSizes) {
  Owned nothing, of_nothing;
  ASSERT_EQ(canele::mpi::make_contiguous(0, named(MPI_BYTE), &nothing.type), MPI_SUCCESS);
  EXPECT_EQ(nothing->size, 0u);
  EXPECT_EQ(nothing->extent(), 0);
  ASSERT_EQ(canele::mpi::make_vector(5, 3, 7, false, *nothing, &of_nothing.type), MPI_SUCCESS);
  EXPECT_EQ(of_nothing->size, 0u);
  const Payload payload(nullptr, 9, *of_nothing);
  EXPECT_EQ(payload.describe().length, 0u);
  EXPECT_EQ(payload.describe().segments, nullptr);
}

TEST(Type, StructIsPaddedToItsAlignment) {
  Owned pair, tight;
  const int blocks[] = {1, 1};
  const MPI_Aint places[] = {0, 8};
  Type* elements[] = {&named(MPI_DOUBLE), &named(MPI_CHAR)};
  ASSERT_EQ(canele::mpi::make_struct(blocks, places, elements, &pair.type), MPI_SUCCESS);
  EXPECT_EQ(pair->size, 9u);
  EXPECT_EQ(pair->extent(), 16);
  EXPECT_EQ(pair->true_upper, 9);
  EXPECT_EQ(count_pieces(*pair, 3), 3);
  ASSERT_EQ(canele::mpi::make_resized(*pair, 0, 9, &tight.type), MPI_SUCCESS);
  EXPECT_EQ(tight->extent(), 9);
  EXPECT_EQ(count_pieces(*tight, 3), 1);
}

TEST(Type, NegativeStridesAndDisplacements) {
  Owned backwards;
  ASSERT_EQ(canele::mpi::make_vector(3, 1, -2, false, named(MPI_INT), &backwards.type), MPI_SUCCESS);
  EXPECT_EQ(backwards->lower, -16);
  EXPECT_EQ(backwards->upper, 4);
  int memory[5] = {10, 11, 12, 13, 14};
  int packed[3] = {};
  canele::mpi::pack(Payload(memory + 4, 1, *backwards), 0, sizeof packed, packed);
  EXPECT_EQ(packed[0], 14);
  EXPECT_EQ(packed[1], 12);
  EXPECT_EQ(packed[2], 10);
}

TEST(Type, ContentsAreTheArguments) {
  Owned vector, hvector, structure;
  ASSERT_EQ(canele::mpi::make_vector(3, 2, 5, false, named(MPI_INT), &vector.type), MPI_SUCCESS);
  EXPECT_EQ(vector->combiner, MPI_COMBINER_VECTOR);
  EXPECT_EQ(vector->contents.integers, (std::vector<int>{3, 2, 5}));
  ASSERT_EQ(canele::mpi::make_vector(4, 1, 100, true, *vector, &hvector.type), MPI_SUCCESS);
  EXPECT_EQ(hvector->combiner, MPI_COMBINER_HVECTOR);
  EXPECT_EQ(hvector->contents.integers, (std::vector<int>{4, 1}));
  EXPECT_EQ(hvector->contents.addresses, (std::vector<MPI_Aint>{100}));
  EXPECT_EQ(hvector->contents.types, (std::vector<Type*>{vector.type}));
  const int blocks[] = {1, 2};
  const MPI_Aint places[] = {0, 400};
  Type* elements[] = {hvector.type, &named(MPI_CHAR)};
  ASSERT_EQ(canele::mpi::make_struct(blocks, places, elements, &structure.type), MPI_SUCCESS);
  EXPECT_EQ(structure->contents.integers, (std::vector<int>{2, 1, 2}));
  EXPECT_EQ(structure->contents.addresses, (std::vector<MPI_Aint>{0, 400}));
}

TEST(Type, AConstituentLivesAsLongAsItsUser) {
  Type* inner = nullptr;
  Type* outer = nullptr;
  ASSERT_EQ(canele::mpi::make_vector(2, 1, 3, false, named(MPI_INT), &inner), MPI_SUCCESS);
  const MPI_Datatype inner_handle = inner->handle;
  ASSERT_EQ(canele::mpi::make_vector(2, 1, 100, true, *inner, &outer), MPI_SUCCESS);
  const MPI_Datatype outer_handle = outer->handle;
  drop_reference(*inner);
  EXPECT_EQ(find_type(inner_handle), inner);
  EXPECT_EQ(count_pieces(*outer), 4);
  drop_reference(*outer);
  EXPECT_EQ(find_type(outer_handle), nullptr);
  EXPECT_EQ(find_type(inner_handle), nullptr);
}

TEST(Type, PredefinedOnesAreNotCounted) {
  for (int i = 0; i < 3; ++i) drop_reference(named(MPI_BYTE));
  EXPECT_NE(find_type(MPI_BYTE), nullptr);
}

TEST(Type, WrongArgumentsAreRejected) {
  Type* type = nullptr;
  EXPECT_EQ(canele::mpi::make_contiguous(-1, named(MPI_INT), &type), MPI_ERR_COUNT);
  EXPECT_EQ(canele::mpi::make_vector(1, -1, 1, false, named(MPI_INT), &type), MPI_ERR_ARG);
  Owned big;
  ASSERT_EQ(canele::mpi::make_contiguous(INT_MAX, named(MPI_C_LONG_DOUBLE_COMPLEX), &big.type), MPI_SUCCESS);
  EXPECT_EQ(big->size, std::size_t{INT_MAX} * 32);
  EXPECT_EQ(canele::mpi::make_vector(INT_MAX, INT_MAX, 1, false, *big, &type), MPI_ERR_COUNT);
  const int blocks[] = {1, -3};
  const MPI_Aint places[] = {0, 8};
  EXPECT_EQ(canele::mpi::make_hindexed(blocks, places, named(MPI_INT), &type), MPI_ERR_ARG);
  EXPECT_EQ(type, nullptr);
}

TEST(Type, NestingIsBounded) {
  std::vector<Type*> chain{&named(MPI_INT)};
  int code = MPI_SUCCESS;
  while (code == MPI_SUCCESS && chain.size() < 1000) {
    Type* next = nullptr;
    code = canele::mpi::make_duplicate(*chain.back(), &next);
    if (code == MPI_SUCCESS) chain.push_back(next);
  }
  EXPECT_EQ(code, MPI_ERR_TYPE);
  EXPECT_GT(chain.size(), 100u);
  EXPECT_TRUE(chain.back()->single.contiguous());
  for (std::size_t i = 1; i < chain.size(); ++i) drop_reference(*chain[i]);
}

}  // namespace
