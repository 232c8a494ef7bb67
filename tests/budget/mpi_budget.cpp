// SPDX-License-Identifier: BSD-3-Clause
//
// mpi_budget: messages of a process to itself by the MPI functions, for callgrind to count what these add. One thread.
//
// Usage: valgrind --tool=callgrind --collect-atstart=no ... mpi_budget
// budget_test.py subtracts the engine's part. The message goes to the process itself because MPI has one engine in a
// process; the MPI functions do the same work as for another rank.
#include <mpi.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "counting.hpp"
#include "still_clock.hpp"

namespace canele::test::budget {
namespace {

constexpr int most = 64;

struct World {
  int count = 1;
  std::array<std::array<char, 8>, most> out{}, in{};
  std::array<MPI_Request, most> receives{}, sends{};
  MPI_Comm comm = MPI_COMM_NULL;  // the program's own
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Win window = MPI_WIN_NULL;  // of memory that is mapped
  char* memory = nullptr;
  std::int64_t sum = 0;
  MPI_Request barrier{}, bcast{}, allreduce{};  // persistent
};

void receive(World& w) {
  for (int i = 0; i < w.count; ++i) MPI_Irecv(w.in[i].data(), 8, MPI_CHAR, 0, i, MPI_COMM_WORLD, &w.receives[i]);
}
void send(World& w) {
  for (int i = 0; i < w.count; ++i) MPI_Isend(w.out[i].data(), 8, MPI_CHAR, 0, i, MPI_COMM_WORLD, &w.sends[i]);
}
void wait_receives(World& w) { MPI_Waitall(w.count, w.receives.data(), MPI_STATUSES_IGNORE); }
void wait_sends(World& w) { MPI_Waitall(w.count, w.sends.data(), MPI_STATUSES_IGNORE); }
void check(World& w) {
  for (int i = 0; i < w.count; ++i) must(w.in[i] == w.out[i], "a message has not arrived");
  for (int i = 0; i < w.count; ++i) ++w.out[i][0];
}
void send_fast(World& w) { MPI_Send(w.out[0].data(), 8, MPI_CHAR, 0, 0, MPI_COMM_WORLD); }
void receive_fast(World& w) { MPI_Recv(w.in[0].data(), 8, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }
void bcast(World& w) { MPI_Bcast(w.out[0].data(), 8, MPI_CHAR, 0, MPI_COMM_WORLD); }
void reduce(World& w) { MPI_Reduce(w.out[0].data(), w.in[0].data(), 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD); }
void allreduce(World& w) { MPI_Allreduce(w.out[0].data(), w.in[0].data(), 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD); }
void gather(World& w) { MPI_Gather(w.out[0].data(), 8, MPI_CHAR, w.in[0].data(), 8, MPI_CHAR, 0, MPI_COMM_WORLD); }
void alltoall(World& w) { MPI_Alltoall(w.out[0].data(), 8, MPI_CHAR, w.in[0].data(), 8, MPI_CHAR, MPI_COMM_WORLD); }
void barrier(World&) { MPI_Barrier(MPI_COMM_WORLD); }
void ibarrier(World& w) {
  MPI_Ibarrier(MPI_COMM_WORLD, &w.receives[0]);
  MPI_Wait(&w.receives[0], MPI_STATUS_IGNORE);
}
void ibcast(World& w) {
  MPI_Ibcast(w.out[0].data(), 8, MPI_CHAR, 0, MPI_COMM_WORLD, &w.receives[0]);
  MPI_Wait(&w.receives[0], MPI_STATUS_IGNORE);
}
void iallreduce(World& w) {
  MPI_Iallreduce(w.out[0].data(), w.in[0].data(), 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD, &w.receives[0]);
  MPI_Wait(&w.receives[0], MPI_STATUS_IGNORE);
}
void make_persistent(World& w) {
  MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &w.barrier);
  MPI_Bcast_init(w.out[0].data(), 8, MPI_CHAR, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &w.bcast);
  MPI_Allreduce_init(w.out[0].data(), w.in[0].data(), 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                     &w.allreduce);
}
void start_and_wait(MPI_Request& request) {
  MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}
void start_barrier(World& w) { start_and_wait(w.barrier); }
void start_bcast(World& w) { start_and_wait(w.bcast); }
void start_allreduce(World& w) { start_and_wait(w.allreduce); }
void receive_own(World& w) { MPI_Irecv(w.in[0].data(), 1, w.type, 0, 0, w.comm, &w.receives[0]); }
void send_own(World& w) { MPI_Isend(w.out[0].data(), 1, w.type, 0, 0, w.comm, &w.sends[0]); }
void wait_own(World& w) {
  MPI_Status status;
  MPI_Wait(&w.receives[0], &status);
}
void put(World& w) { MPI_Put(w.out[0].data(), 8, MPI_CHAR, 0, 0, 8, MPI_CHAR, w.window); }
void get(World& w) { MPI_Get(w.in[0].data(), 8, MPI_CHAR, 0, 0, 8, MPI_CHAR, w.window); }
void flush(World& w) { MPI_Win_flush(0, w.window); }
void fetch_and_op(World& w) {
  const std::int64_t one = 1;
  std::int64_t before = 0;
  MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 0, 8, MPI_SUM, w.window);
  must(before == w.sum++, "an atomic operation was lost");
}
void nothing(World&) {}

void count_all() {
  static World w;
  MPI_Comm_dup(MPI_COMM_WORLD, &w.comm);
  MPI_Type_contiguous(8, MPI_CHAR, &w.type);
  MPI_Type_commit(&w.type);
  MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w.memory, &w.window);
  std::memset(w.memory, 0, 64);
  MPI_Win_lock_all(0, w.window);
  const std::vector<Step<World>> steps = {
      {"irecv", receive}, {"isend", send}, {"waitall", wait_receives}, {nullptr, wait_sends}, {nullptr, check}};
  const std::vector<Step<World>> own = {
      {"irecv", receive_own}, {"isend", send_own}, {"wait", wait_own}, {nullptr, wait_sends}, {nullptr, check}};
  for (int i = 0; i < 1000; ++i) {
    for (const Step<World>& step : steps) step.run(w);
    for (const Step<World>& step : own) step.run(w);
  }
  stop_clock(true);
  count("none", w, {{"nothing", nothing}}, 1);
  count("mpi-8", w, steps, 1);
  count("mpi-8", w, {{"send", send_fast}, {"recv", receive_fast}, {nullptr, check}}, 1);
  const std::vector<Step<World>> collectives = {{"bcast", bcast},   {"reduce", reduce},     {"allreduce", allreduce},
                                                {"gather", gather}, {"alltoall", alltoall}, {"barrier", barrier}};
  for (int i = 0; i < 10; ++i) {
    for (const Step<World>& step : collectives) step.run(w);
  }
  count("mpi-8", w, collectives, 1);
  make_persistent(w);
  const std::vector<Step<World>> later = {{"ibarrier", ibarrier},     {"start-barrier", start_barrier},
                                          {"ibcast", ibcast},         {"start-bcast", start_bcast},
                                          {"iallreduce", iallreduce}, {"start-allreduce", start_allreduce}};
  for (int i = 0; i < 10; ++i) {
    for (const Step<World>& step : later) step.run(w);
  }
  count("mpi-8", w, later, 1);
  count("mpi-own-8", w, own, 1);
  const std::vector<Step<World>> accesses = {
      {"put", put}, {"flush", flush}, {"get", get}, {"fetch-and-op", fetch_and_op}, {nullptr, check}};
  for (const Step<World>& step : accesses) step.run(w);
  count("mpi-mapped-8", w, accesses, 1);
  w.count = most;
  count("mpi-64x8", w, steps, most);
  stop_clock(false);
  MPI_Win_unlock_all(w.window);
  MPI_Win_free(&w.window);
  MPI_Type_free(&w.type);
  MPI_Comm_free(&w.comm);
  for (MPI_Request* request : {&w.barrier, &w.bcast, &w.allreduce}) MPI_Request_free(request);
}

}  // namespace
}  // namespace canele::test::budget

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  canele::test::budget::count_all();
  return MPI_Finalize();
}
