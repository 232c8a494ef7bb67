// SPDX-License-Identifier: BSD-3-Clause
//
// The nmad layer where it needs no engine: descriptors, structures, the stack, names before MPI_Init.
#include <gtest/gtest.h>
#include <nm_mpi_nmad.h>
#include <nm_public.h>
#include <pioman.h>

#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "starpu_glue/nmad/internal.hpp"

PUK_LFSTACK_TYPE(number, int value;)

namespace {

using canele::nmad::Data;

/// Returns the bytes that a descriptor names, in order.
std::string read_all(const nm_data_s& descriptor, std::size_t offset, int max) {
  const canele_data_t data = Data::of(&descriptor).describe();
  if (data.segments == nullptr) return std::string(static_cast<char*>(data.base) + offset, data.length - offset);
  std::string bytes;
  std::vector<struct iovec> pieces(static_cast<std::size_t>(max));
  while (offset < data.length) {
    const int count = data.segments(data.context, offset, pieces.data(), max);
    if (count < 1) return bytes + " (no piece)";
    for (int i = 0; i < count; ++i) {
      const struct iovec& piece = pieces[static_cast<std::size_t>(i)];
      bytes.append(static_cast<char*>(piece.iov_base), piece.iov_len);
      offset += piece.iov_len;
    }
  }
  return bytes;
}

TEST(Nmad, ContiguousData) {
  char text[] = "hello";
  nm_data_s data;
  nm_data_contiguous_build(&data, text, 5);
  EXPECT_EQ(read_all(data, 0, 1), "hello");
  nm_data_contiguous_build(&data, nullptr, 0);
  EXPECT_EQ(Data::of(&data).describe().length, 0u);
}

TEST(Nmad, DataWithoutMemoryNamesTheSettingThatHelps) {
  nm_data_s data;
  nm_data_contiguous_build(&data, nullptr, 4096);
  EXPECT_DEATH(canele::nmad::must_have_memory(Data::of(&data).describe(), "nm_mcast_isend"),
               "nm_mcast_isend: .* 4096 bytes.*STARPU_MPI_COOP_SENDS=0");
  nm_data_contiguous_build(&data, nullptr, 0);
  canele::nmad::must_have_memory(Data::of(&data).describe(), "nm_mcast_isend");
}

TEST(Nmad, IovecsWithEmptyPieces) {
  char head[] = "head", tail[] = "tail";
  const struct iovec pieces[] = {{nullptr, 0}, {head, 4}, {nullptr, 0}, {tail, 4}, {nullptr, 0}};
  nm_data_s data;
  nm_data_iov_build(&data, pieces, 5);
  for (int max = 1; max < 4; ++max) {
    EXPECT_EQ(read_all(data, 0, max), "headtail");
    EXPECT_EQ(read_all(data, 3, max), "dtail");
    EXPECT_EQ(read_all(data, 4, max), "tail");
  }
  const struct iovec header_only[] = {{head, 4}, {nullptr, 0}};
  nm_data_iov_build(&data, header_only, 2);
  EXPECT_EQ(read_all(data, 0, 2), "head");
  nm_data_iov_build(&data, pieces, 1);
  EXPECT_EQ(Data::of(&data).describe().length, 0u);
}

TEST(Nmad, DatatypesAreReferencedAndCountsAre64Bit) {
  canele::mpi::Type* vector = nullptr;
  ASSERT_EQ(canele::mpi::make_vector(2, 2, 3, false, *canele::mpi::find_type(MPI_CHAR), &vector), MPI_SUCCESS);
  const MPI_Datatype handle = vector->handle;
  char text[] = "ab_cd";
  nm_data_s data;
  nm_mpi_nmad_data_get(&data, text, handle, 1);
  canele::mpi::drop_reference(*vector);
  EXPECT_NE(canele::mpi::find_type(handle), nullptr);
  const nm_data_s copy = data;  // by value, as StarPU's stack variable
  std::memset(&data, 0xff, sizeof data);
  EXPECT_EQ(read_all(copy, 0, 4), "abcd");
  nm_mpi_nmad_data_release(handle);
  EXPECT_EQ(canele::mpi::find_type(handle), nullptr);

  nm_mpi_nmad_data_get(&data, text, MPI_BYTE, std::int64_t{5} << 30);
  EXPECT_EQ(Data::of(&data).describe().length, std::size_t{5} << 30);
  EXPECT_EQ(Data::of(&data).describe().base, text);
}

TEST(Nmad, GatesNameRanks) {
  for (int rank : {0, 1, 4095, 1 << 20}) {
    EXPECT_NE(canele::nmad::gate_of(rank), nullptr);
    EXPECT_EQ(canele::nmad::rank_of(canele::nmad::gate_of(rank)), rank);
  }
}

TEST(Nmad, StructuresFitAndChecksPass) {
  EXPECT_LE(alignof(nm_sr_request_t), 16u);  // calloc gives no more
  EXPECT_LE(alignof(piom_cond_t), 16u);
  nm_abi_config_check();
  EXPECT_DEATH(nm_abi_check_sizes(CANELE_NMAD_ABI, 1, sizeof(nm_data_s), sizeof(piom_cond_t)), "compile it again");
}

TEST(Nmad, StackManyPushOnePops) {
  static number_lfstack_t stack;
  number_lfstack_init(&stack);
  EXPECT_EQ(number_lfstack_pop(&stack), nullptr);
  constexpr int kThreads = 4;
  constexpr int kEach = 20000;
  std::vector<std::thread> threads;
  for (int id = 0; id < kThreads; ++id) {
    threads.emplace_back([id] {
      for (int i = 0; i < kEach; ++i) {
        auto* cell = static_cast<number_lfstack_cell_t*>(padico_malloc(sizeof(number_lfstack_cell_t)));
        cell->value = id * kEach + i;
        number_lfstack_push(&stack, cell);
      }
    });
  }
  std::vector<bool> seen(kThreads * kEach);
  int popped = 0;
  while (popped < kThreads * kEach) {
    number_lfstack_cell_t* cell = number_lfstack_pop(&stack);
    if (cell == nullptr) {
      std::this_thread::yield();
      continue;
    }
    EXPECT_FALSE(seen[static_cast<std::size_t>(cell->value)]);
    seen[static_cast<std::size_t>(cell->value)] = true;
    ++popped;
    std::free(cell);
  }
  for (auto& thread : threads) thread.join();
  number_lfstack_destroy(&stack);
}

TEST(Nmad, ConditionsAndHooksWorkWithoutMpi) {
  piom_cond_t condition;
  piom_cond_init(&condition, 0);
  EXPECT_EQ(piom_cond_test_locked(&condition, 1), 0);
  std::thread signaller([&condition] { piom_cond_signal(&condition, 1); });
  while (piom_cond_test_locked(&condition, 1) == 0) piom_cond_wait(&condition, 1);
  signaller.join();
  piom_cond_destroy(&condition);
  piom_cond_init(&condition, 4);
  EXPECT_EQ(piom_cond_test_locked(&condition, 6), 4);
  EXPECT_NE(piom_ltask_schedule(PIOM_POLL_POINT_FORCED), 0);  // nothing to do: the caller may block
}

TEST(NmadDeathTest, CallsOutsideMpiSaySo) {
  nm_session_t session;
  nm_gate_t gate;
  EXPECT_DEATH(nm_mpi_nmad_dest(&session, &gate, MPI_COMM_WORLD, 0), "nm_mpi_nmad_dest was called before MPI_Init");
  int rank = 0;
  EXPECT_DEATH(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank was called before MPI_Init");
}

}  // namespace
