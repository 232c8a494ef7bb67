// SPDX-License-Identifier: BSD-3-Clause
//
// MPI calls with buffers in device memory: messages of each kind, any datatype, collectives; windows reject them.
#include <mpi-ext.h>
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "tests/gpu/checks.hpp"

namespace canele::gpu_test {
namespace {

int rank = 0, size = 1, next = 0, previous = 0;

#define MUST(call) expect((call) == MPI_SUCCESS, #call, __LINE__)

/// An array of ints in device memory.
class Ints {
 public:
  explicit Ints(std::size_t count) : memory_(count * sizeof(int)), count_(count) { fill(-1, 0); }
  Ints(std::size_t count, int first, int step = 1) : Ints(count) { fill(first, step); }
  int* data() const { return reinterpret_cast<int*>(memory_.data()); }
  void fill(int first, int step) {
    std::vector<int> host(count_);
    for (std::size_t i = 0; i < count_; ++i) host[i] = first + step * static_cast<int>(i);
    memory_.write(std::string(reinterpret_cast<const char*>(host.data()), count_ * sizeof(int)));
  }
  std::vector<int> read() const {
    const std::string bytes = memory_.read();
    std::vector<int> host(count_);
    std::memcpy(host.data(), bytes.data(), bytes.size());
    return host;
  }
  /// Returns whether element i is first + step * i.
  bool holds(int first, int step = 1) const {
    const std::vector<int> host = read();
    for (std::size_t i = 0; i < count_; ++i) {
      if (host[i] != first + step * static_cast<int>(i)) return false;
    }
    return true;
  }

 private:
  DeviceMemory memory_;
  std::size_t count_;
};

constexpr int lengths[] = {1, 10, 1000, 20'000, 300'000};

void point_to_point() {
  for (const int count : lengths) {
    const auto n = static_cast<std::size_t>(count);
    const Ints out(n, 7 * rank), in(n);
    MUST(MPI_Sendrecv(out.data(), count, MPI_INT, next, 1, in.data(), count, MPI_INT, previous, 1, MPI_COMM_WORLD,
                      MPI_STATUS_IGNORE));
    EXPECT(in.holds(7 * previous));
    Ints again(n);
    MPI_Request requests[2];
    MUST(MPI_Irecv(again.data(), count, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &requests[0]));
    MUST(MPI_Issend(out.data(), count, MPI_INT, next, 2, MPI_COMM_WORLD, &requests[1]));
    MPI_Status statuses[2];
    MUST(MPI_Waitall(2, requests, statuses));
    int got = 0;
    MUST(MPI_Get_count(&statuses[0], MPI_INT, &got));
    EXPECT(got == count && statuses[0].MPI_SOURCE == previous && again.holds(7 * previous));
    again.fill(100 + rank, 2);
    MUST(MPI_Sendrecv_replace(again.data(), count, MPI_INT, next, 3, previous, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    EXPECT(again.holds(100 + previous, 2));
    MUST(MPI_Isend(out.data(), count, MPI_INT, next, 4, MPI_COMM_WORLD, &requests[0]));
    MPI_Message message;
    MUST(MPI_Mprobe(previous, 4, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
    again.fill(0, 0);
    MUST(MPI_Mrecv(again.data(), count, MPI_INT, &message, MPI_STATUS_IGNORE));
    MUST(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    EXPECT(again.holds(7 * previous));
  }
}

void buffered_and_packed() {
  constexpr int count = 5000;
  const Ints out(count, rank), in(count);
  std::vector<char> room(count * sizeof(int) + MPI_BSEND_OVERHEAD);
  MUST(MPI_Buffer_attach(room.data(), static_cast<int>(room.size())));
  MUST(MPI_Bsend(out.data(), count, MPI_INT, next, 5, MPI_COMM_WORLD));
  MUST(MPI_Recv(in.data(), count, MPI_INT, previous, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  void* detached = nullptr;
  int bytes = 0;
  MUST(MPI_Buffer_detach(&detached, &bytes));
  EXPECT(in.holds(previous));
  std::vector<int> packed(count);
  int position = 0;
  MUST(MPI_Pack(out.data(), count, MPI_INT, packed.data(), count * 4, &position, MPI_COMM_WORLD));
  EXPECT(position == count * 4 && packed[0] == rank && packed[count - 1] == rank + count - 1);
  const Ints device_packed(count);
  position = 0;
  MUST(MPI_Pack(out.data(), count, MPI_INT, device_packed.data(), count * 4, &position, MPI_COMM_WORLD));
  position = 0;
  MUST(MPI_Unpack(device_packed.data(), count * 4, &position, in.data(), count, MPI_INT, MPI_COMM_WORLD));
  EXPECT(in.holds(rank));
}

void repeated() {
  constexpr int count = 3000, parts = 4;
  Ints out(count), in(count);
  MPI_Request both[2];
  MUST(MPI_Send_init(out.data(), count, MPI_INT, next, 6, MPI_COMM_WORLD, &both[0]));
  MUST(MPI_Recv_init(in.data(), count, MPI_INT, previous, 6, MPI_COMM_WORLD, &both[1]));
  for (int round = 0; round < 3; ++round) {
    out.fill(1000 * round + rank, 1);
    MUST(MPI_Startall(2, both));
    MUST(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    EXPECT(in.holds(1000 * round + previous));
  }
  for (MPI_Request& one : both) MUST(MPI_Request_free(&one));
  MUST(MPI_Psend_init(out.data(), parts, count / parts, MPI_INT, next, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]));
  MUST(MPI_Precv_init(in.data(), parts, count / parts, MPI_INT, previous, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]));
  for (int round = 0; round < 2; ++round) {
    out.fill(50 * round + rank, 3);
    MUST(MPI_Startall(2, both));
    for (int part = parts - 1; part >= 0; --part) MUST(MPI_Pready(part, both[0]));
    MUST(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    EXPECT(in.holds(50 * round + previous, 3));
  }
  for (MPI_Request& one : both) MUST(MPI_Request_free(&one));
}

/// A column block of a matrix on the device, and a header on the host with data on the device in one message.
void datatypes() {
  constexpr int rows = 40, columns = 30, width = 6;
  const Ints matrix(rows * columns, 10 * rank), target(rows * columns);
  MPI_Datatype tile;
  MUST(MPI_Type_vector(rows, width, columns, MPI_INT, &tile));
  MUST(MPI_Type_commit(&tile));
  MUST(MPI_Sendrecv(matrix.data() + 3, 1, tile, next, 8, target.data() + 5, 1, tile, previous, 8, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
  const std::vector<int> got = target.read();
  bool right = true;
  for (int i = 0; i < rows * columns; ++i) {
    const int column = i % columns - 5;
    const bool inside = column >= 0 && column < width;
    right = right && got[static_cast<std::size_t>(i)] == (inside ? 10 * previous + i - 2 : -1);
  }
  EXPECT(right);
  MUST(MPI_Bcast(target.data(), 1, tile, 0, MPI_COMM_WORLD));
  MUST(MPI_Type_free(&tile));

  int head = 77 + rank, got_head = 0;
  const auto both = [&](int* host, int* device) {
    MPI_Aint places[2];
    MPI_Get_address(host, &places[0]);
    MPI_Get_address(device, &places[1]);
    const int counts[] = {1, 500};
    MPI_Datatype made;
    MUST(MPI_Type_create_hindexed(2, counts, places, MPI_INT, &made));
    MUST(MPI_Type_commit(&made));
    return made;
  };
  MPI_Datatype from = both(&head, matrix.data()), to = both(&got_head, target.data());
  MUST(MPI_Sendrecv(MPI_BOTTOM, 1, from, next, 9, MPI_BOTTOM, 1, to, previous, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  const std::vector<int> now = target.read();
  EXPECT(got_head == 77 + previous && now[0] == 10 * previous && now[499] == 10 * previous + 499);
  MUST(MPI_Type_free(&from));
  MUST(MPI_Type_free(&to));
}

void collectives() {
  for (const int count : lengths) {
    const auto n = static_cast<std::size_t>(count), all = n * static_cast<std::size_t>(size);
    Ints buffer(n, rank == 0 ? 5 : -3);
    MUST(MPI_Bcast(buffer.data(), count, MPI_INT, 0, MPI_COMM_WORLD));
    EXPECT(buffer.holds(5));
    const Ints mine(n, rank), sum(n), gathered(all);
    const int ranks = size * (size - 1) / 2;
    MUST(MPI_Allreduce(mine.data(), sum.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    EXPECT(sum.holds(ranks, size));
    buffer.fill(rank, 1);
    MUST(MPI_Allreduce(MPI_IN_PLACE, buffer.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    EXPECT(buffer.holds(ranks, size));
    std::vector<int> host(n, -1);
    MUST(MPI_Reduce(mine.data(), host.data(), count, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD));
    EXPECT(rank != 0 || host[n - 1] == ranks + size * (count - 1));
    MUST(MPI_Scan(mine.data(), sum.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    EXPECT(sum.holds(rank * (rank + 1) / 2, rank + 1));
    MUST(MPI_Allgather(mine.data(), count, MPI_INT, gathered.data(), count, MPI_INT, MPI_COMM_WORLD));
    const std::vector<int> parts = gathered.read();
    bool right = true;
    for (std::size_t i = 0; i < all; ++i) right = right && parts[i] == static_cast<int>(i / n + i % n);
    EXPECT(right);
    MUST(MPI_Gather(mine.data(), count, MPI_INT, gathered.data(), count, MPI_INT, 0, MPI_COMM_WORLD));
    Ints part(n);
    MUST(MPI_Scatter(gathered.data(), count, MPI_INT, part.data(), count, MPI_INT, 0, MPI_COMM_WORLD));
    EXPECT(part.holds(rank));
    const Ints exchanged(all);
    Ints given(all);
    given.fill(rank, 0);
    MUST(MPI_Alltoall(given.data(), count, MPI_INT, exchanged.data(), count, MPI_INT, MPI_COMM_WORLD));
    const std::vector<int> from_all = exchanged.read();
    for (std::size_t i = 0; i < all; ++i) right = right && from_all[i] == static_cast<int>(i / n);
    EXPECT(right);
    MPI_Request request;
    MUST(MPI_Iallreduce(mine.data(), sum.data(), count, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &request));
    MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
    EXPECT(sum.holds(size - 1));
    MUST(MPI_Allreduce_init(mine.data(), sum.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    for (int round = 0; round < 2; ++round) {
      MUST(MPI_Start(&request));
      MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
      EXPECT(sum.holds(ranks, size));
    }
    MUST(MPI_Request_free(&request));
  }
  std::vector<int> counts(static_cast<std::size_t>(size)), places(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) counts[static_cast<std::size_t>(i)] = i + 1;
  std::partial_sum(counts.begin(), counts.end() - 1, places.begin() + 1);
  const Ints mine(static_cast<std::size_t>(rank) + 1, 100 * rank);
  const Ints all(static_cast<std::size_t>(places.back() + counts.back()));
  MUST(MPI_Allgatherv(mine.data(), rank + 1, MPI_INT, all.data(), counts.data(), places.data(), MPI_INT,
                      MPI_COMM_WORLD));
  EXPECT(all.read().back() == 100 * (size - 1) + size - 1);
}

bool is_buffer_error(int code) {
  int error_class = MPI_SUCCESS;
  MPI_Error_class(code, &error_class);
  return error_class == MPI_ERR_BUFFER;
}

void windows() {
  const Ints device(16);
  int* memory = nullptr;
  MPI_Win window;
  MUST(MPI_Win_allocate(64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window));
  MUST(MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN));
  MUST(MPI_Win_lock_all(0, window));
  int* const there = device.data();
  int one = 1, other = 2, result = 0;
  EXPECT(is_buffer_error(MPI_Put(there, 16, MPI_INT, next, 0, 16, MPI_INT, window)));
  EXPECT(is_buffer_error(MPI_Get(there, 1, MPI_INT, next, 0, 1, MPI_INT, window)));
  EXPECT(is_buffer_error(MPI_Accumulate(there, 1, MPI_INT, next, 0, 1, MPI_INT, MPI_SUM, window)));
  EXPECT(
      is_buffer_error(MPI_Get_accumulate(&one, 1, MPI_INT, there, 1, MPI_INT, next, 0, 1, MPI_INT, MPI_SUM, window)));
  EXPECT(is_buffer_error(MPI_Fetch_and_op(there, &result, MPI_INT, next, 0, MPI_SUM, window)));
  EXPECT(is_buffer_error(MPI_Fetch_and_op(&one, there, MPI_INT, next, 0, MPI_SUM, window)));
  EXPECT(is_buffer_error(MPI_Compare_and_swap(there, &other, &result, MPI_INT, next, 0, window)));
  EXPECT(is_buffer_error(MPI_Compare_and_swap(&one, there, &result, MPI_INT, next, 0, window)));
  EXPECT(is_buffer_error(MPI_Compare_and_swap(&one, &other, there, MPI_INT, next, 0, window)));
  // A buffer that only its datatype names.
  MPI_Aint place = 0;
  MPI_Get_address(there, &place);
  const int length = 1;
  MPI_Datatype absolute;
  MUST(MPI_Type_create_hindexed(1, &length, &place, MPI_INT, &absolute));
  MUST(MPI_Type_commit(&absolute));
  EXPECT(is_buffer_error(MPI_Put(MPI_BOTTOM, 1, absolute, next, 0, 1, MPI_INT, window)));
  MUST(MPI_Type_free(&absolute));
  MUST(MPI_Fetch_and_op(&one, &result, MPI_INT, next, 0, MPI_REPLACE, window));  // host memory still works
  MUST(MPI_Win_unlock_all(window));
  MUST(MPI_Win_free(&window));
  MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  EXPECT(MPI_Win_create(there, 64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &window) != MPI_SUCCESS);
  MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

void local_calls() {
  const Ints device(4, 1);
  int host[4] = {1, 2, 3, 4};
  MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  EXPECT(is_buffer_error(MPI_Reduce_local(device.data(), host, 4, MPI_INT, MPI_SUM)));
  EXPECT(is_buffer_error(MPI_Reduce_local(host, device.data(), 4, MPI_INT, MPI_SUM)));
  MPI_Aint position = 0;
  EXPECT(is_buffer_error(MPI_Pack_external("external32", device.data(), 4, MPI_INT, host, 16, &position)));
  EXPECT(is_buffer_error(MPI_Unpack_external("external32", device.data(), 16, &position, host, 4, MPI_INT)));
  MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

int run(int argc, char** argv) {
  use_device(0);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  next = (rank + 1) % size;
  previous = (rank + size - 1) % size;
  EXPECT(MPIX_Query_cuda_support() == 1);
  EXPECT(MPIX_Query_hip_support() == 0 && MPIX_Query_rocm_support() == 0);
  point_to_point();
  buffered_and_packed();
  repeated();
  datatypes();
  collectives();
  windows();
  local_calls();
  MPI_Finalize();
  return end_checks(rank);
}

}  // namespace
}  // namespace canele::gpu_test

int main(int argc, char** argv) { return canele::gpu_test::run(argc, argv); }
