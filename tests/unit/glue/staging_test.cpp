// SPDX-License-Identifier: BSD-3-Clause
//
// Staging: what goes to the engine as it is, what is copied, what is copied back; calls of the program's operators.
#include "starpu_glue/mpi/datatypes/staging.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace {

using canele::mpi::Blocks;
using canele::mpi::Buffer;
using canele::mpi::drop_reference;
using canele::mpi::EngineBlocks;
using canele::mpi::find_type;
using canele::mpi::make_resized;
using canele::mpi::make_vector;
using canele::mpi::Operator;
using canele::mpi::Slots;
using canele::mpi::slots_of;
using canele::mpi::Staging;
using canele::mpi::Type;

Type& predefined(MPI_Datatype handle) { return *find_type(handle); }

/// Returns a type of `count` ints with a gap behind each, in an extent of `extent` ints.
Type* spaced(int count, int extent) {
  Type* bare = nullptr;
  Type* made = nullptr;
  EXPECT_EQ(make_vector(count, 1, 2, false, predefined(MPI_INT), &bare), MPI_SUCCESS);
  EXPECT_EQ(make_resized(*bare, 0, extent * static_cast<std::ptrdiff_t>(sizeof(int)), &made), MPI_SUCCESS);
  drop_reference(*bare);
  return made;
}

char* bytes(int* cells) { return reinterpret_cast<char*>(cells); }

template <std::size_t kCount>
std::array<int, kCount> counted() {
  std::array<int, kCount> cells{};
  std::iota(cells.begin(), cells.end(), 0);
  return cells;
}

TEST(Staging, ElementsOfAReductionStandInSlots) {
  const Slots plain = slots_of(predefined(MPI_DOUBLE));
  EXPECT_TRUE(plain.dense);
  EXPECT_EQ(plain.pitch, sizeof(double));
  const Slots pair = slots_of(predefined(MPI_DOUBLE_INT));  // 12 bytes in 16
  EXPECT_FALSE(pair.dense);
  EXPECT_FALSE(pair.separate);
  EXPECT_EQ(pair.pitch, 16u);
  EXPECT_TRUE(slots_of(predefined(MPI_2INT)).dense);
  Type* const column = spaced(4, 1);  // reaches far out of its extent
  const Slots apart = slots_of(*column);
  EXPECT_TRUE(apart.separate);
  EXPECT_EQ(apart.pitch, 32u);  // 28 bytes, aligned
  Type* low = nullptr;
  ASSERT_EQ(make_resized(predefined(MPI_INT), -4, 4, &low), MPI_SUCCESS);  // an int like any other
  EXPECT_TRUE(slots_of(*low).dense);
  EXPECT_EQ(slots_of(*low).shift, 0);
  drop_reference(*low);
  drop_reference(*column);
}

TEST(Staging, WhatIsOneBlockIsNotCopied) {
  auto cells = counted<12>();
  Staging staging;
  EngineBlocks in, out;
  const Blocks blocks{bytes(cells.data()), 3, 4, &predefined(MPI_INT)};
  ASSERT_EQ(staging.input(blocks, &in), MPI_SUCCESS);
  ASSERT_EQ(staging.output(blocks, true, &out), MPI_SUCCESS);
  for (const EngineBlocks* engine : {&in, &out}) {
    EXPECT_EQ(engine->memory, bytes(cells.data()));
    EXPECT_EQ(engine->parts.length, 4 * sizeof(int));
    EXPECT_EQ(engine->parts.lengths, nullptr);
    EXPECT_EQ(engine->parts.offsets, nullptr);
  }
  const void* input = nullptr;
  void* output = nullptr;
  const Buffer elements{cells.data(), 12, &predefined(MPI_INT)};
  ASSERT_EQ(staging.input_slots(elements, &input), MPI_SUCCESS);
  ASSERT_EQ(staging.output_slots(elements, 12, true, &output), MPI_SUCCESS);
  EXPECT_EQ(input, cells.data());
  EXPECT_EQ(output, cells.data());
}

TEST(Staging, BlocksWithPlacesOfTheirOwnAreNotCopiedEither) {
  auto cells = counted<12>();
  const int counts[] = {2, 0, 3};
  const int places[] = {3, 77, -5};
  Staging staging;
  EngineBlocks engine;
  const Blocks blocks{bytes(cells.data() + 6), 3, 0, &predefined(MPI_INT), counts, places};
  ASSERT_EQ(staging.output(blocks, false, &engine), MPI_SUCCESS);
  EXPECT_EQ(engine.memory, bytes(cells.data() + 1));  // the lowest part
  EXPECT_EQ(engine.lengths, (std::vector<std::size_t>{8, 0, 12}));
  EXPECT_EQ(engine.offsets, (std::vector<std::size_t>{32, 0, 0}));
}

TEST(Staging, OfAPersistentCollectiveReadsAtEachStartAndDeliversOnceEach) {
  auto cells = counted<4>();
  auto results = counted<4>();
  Type* const type = spaced(2, 4);  // cells 0 and 2 of four
  Staging staging;
  staging.keep();
  EngineBlocks in, out;
  ASSERT_EQ(staging.input(Blocks{bytes(cells.data()), 1, 1, type}, &in), MPI_SUCCESS);
  ASSERT_EQ(staging.output(Blocks{bytes(results.data()), 1, 1, type}, false, &out), MPI_SUCCESS);
  const int* packed = reinterpret_cast<const int*>(in.memory);
  int* result = reinterpret_cast<int*>(out.memory);
  for (int round = 0; round < 3; ++round) {
    cells = {10 + round, -1, 20 + round, -1};
    staging.fill();
    EXPECT_EQ((std::vector<int>(packed, packed + 2)), (std::vector<int>{10 + round, 20 + round}));
    std::copy(packed, packed + 2, result);
    staging.deliver();
    EXPECT_EQ(results, (std::array<int, 4>{10 + round, 1, 20 + round, 3}));
    results[0] = 77;
    staging.settle();
    staging.deliver();
    EXPECT_EQ(results[0], 77);
  }
  staging.reset();
  drop_reference(*type);
}

TEST(Staging, ATypeWithGapsIsCopiedAndItsGapsStay) {
  auto cells = counted<8>();
  Type* const type = spaced(2, 4);  // cells 0 and 2 of four
  {
    Staging staging;
    EngineBlocks in, out;
    const Blocks blocks{bytes(cells.data()), 2, 1, type};
    ASSERT_EQ(staging.input(blocks, &in), MPI_SUCCESS);
    ASSERT_NE(in.memory, bytes(cells.data()));
    EXPECT_EQ(in.parts.length, 2 * sizeof(int));
    const int* packed = reinterpret_cast<const int*>(in.memory);
    EXPECT_EQ((std::vector<int>(packed, packed + 4)), (std::vector<int>{0, 2, 4, 6}));
    ASSERT_EQ(staging.output(blocks, true, &out), MPI_SUCCESS);
    int* result = reinterpret_cast<int*>(out.memory);
    EXPECT_EQ((std::vector<int>(result, result + 4)), (std::vector<int>{0, 2, 4, 6}));  // filled
    for (int i = 0; i < 4; ++i) result[i] = 100 + i;
    const MPI_Datatype handle = type->handle;
    drop_reference(*type);  // as MPI_Type_free does
    EXPECT_EQ(find_type(handle), type);
    EXPECT_EQ(cells[0], 0);
    staging.deliver();
    EXPECT_EQ(cells, (std::array<int, 8>{100, 1, 101, 3, 102, 5, 103, 7}));
    staging.reset();
    EXPECT_EQ(find_type(handle), nullptr);
  }
}

TEST(Staging, OfAReductionsElementsTheFirstGetBack) {
  auto cells = counted<9>();
  Type* const type = spaced(1, 3);  // one cell of three
  {
    Staging staging;
    void* output = nullptr;
    ASSERT_EQ(staging.output_slots({cells.data(), 3, type}, 2, true, &output), MPI_SUCCESS);
    int* slots = static_cast<int*>(output);
    EXPECT_EQ((std::vector<int>(slots, slots + 7)), (std::vector<int>{0, 0, 0, 3, 0, 0, 6}));
    for (int i = 0; i < 9; ++i) slots[i] = -1;
    staging.deliver();
  }
  EXPECT_EQ(cells, (std::array<int, 9>{-1, 1, 2, -1, 4, 5, 6, 7, 8}));
  drop_reference(*type);
}

/// Adds the ints of a column of four with a stride of two ints; counts its calls.
int calls = 0;
void add_column(void* in, void* inout, int* count, MPI_Datatype* type) {
  ++calls;
  const std::ptrdiff_t step = find_type(*type)->extent() / static_cast<std::ptrdiff_t>(sizeof(int));
  for (int i = 0; i < *count; ++i) {
    for (int row = 0; row < 4; ++row) {
      static_cast<int*>(inout)[i * step + 2 * row] += static_cast<const int*>(in)[i * step + 2 * row];
    }
  }
}

TEST(Staging, TheProgramsOperatorSeesElementsAsItsTypeSays) {
  for (const int extent : {8, 1}) {  // within its extent: one call for all; else one for each
    Type* const type = spaced(4, extent);
    auto cells = counted<16>();
    calls = 0;
    {
      Staging staging;
      canele_operator_t engine{};
      const void* in = nullptr;
      void* inout = nullptr;
      const Buffer elements{cells.data(), 2, type};
      ASSERT_EQ(staging.input_slots(elements, &in), MPI_SUCCESS);
      ASSERT_EQ(staging.output_slots(elements, 2, true, &inout), MPI_SUCCESS);
      staging.combine_with(Operator{.user = add_column, .predefined = {}, .commutes = false}, *type, &engine);
      EXPECT_EQ(engine.commutes, 0);
      EXPECT_EQ(engine.element, slots_of(*type).pitch);
      engine.combine(in, inout, 2, engine.argument);
      staging.deliver();
    }
    EXPECT_EQ(calls, extent == 8 ? 1 : 2);
    const auto doubled = [&](int cell) { return extent == 1 ? cell < 8 : cell % 2 == 0; };
    for (int i = 0; i < 16; ++i) EXPECT_EQ(cells[static_cast<std::size_t>(i)], doubled(i) ? 2 * i : i) << i;
    drop_reference(*type);
  }
}

}  // namespace
