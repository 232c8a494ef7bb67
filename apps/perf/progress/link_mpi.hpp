// SPDX-License-Identifier: BSD-3-Clause
//
// Link, by MPI. Threads: as in link.hpp. MPI's own error handler ends the job.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace canele::perf::progress {

class Link {
 public:
  using Request = MPI_Request;

  /// Calls MPI_Init_thread for any number of threads, or for one.
  Link(int* argc, char*** argv, bool threads) {
    const int wanted = threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    int given = 0;
    MPI_Init_thread(argc, argv, wanted, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    if (given < wanted) abort("this MPI has no MPI_THREAD_MULTIPLE");
    find_neighbours();
  }
  ~Link() { MPI_Finalize(); }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  int local_rank() const { return local_rank_; }
  int local_size() const { return local_size_; }

  [[noreturn]] void abort(const std::string& why) {
    std::fprintf(stderr, "mpi_progress: %s\n", why.c_str());
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::exit(1);
  }

  void isend(int to, int tag, const void* data, std::size_t size, Request& request) {
    MPI_Isend(data, static_cast<int>(size), MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
  }
  void irecv(int from, int tag, void* data, std::size_t size, Request& request) {
    MPI_Irecv(data, static_cast<int>(size), MPI_BYTE, from, tag, MPI_COMM_WORLD, &request);
  }
  void barrier() { MPI_Barrier(MPI_COMM_WORLD); }
  bool test(Request& request) {
    int done = 0;
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    return done != 0;
  }
  void wait(Request& request) { MPI_Wait(&request, MPI_STATUS_IGNORE); }

 private:
  void find_neighbours() {
    std::vector<char> own(MPI_MAX_PROCESSOR_NAME, '\0'), all(own.size() * static_cast<std::size_t>(size_));
    int length = 0;
    MPI_Get_processor_name(own.data(), &length);
    const int room = static_cast<int>(own.size());
    MPI_Allgather(own.data(), room, MPI_CHAR, all.data(), room, MPI_CHAR, MPI_COMM_WORLD);
    for (int i = 0; i < size_; ++i) {
      if (!std::equal(own.begin(), own.end(), all.begin() + std::ptrdiff_t{i} * room)) continue;
      ++local_size_;
      if (i < rank_) ++local_rank_;
    }
  }

  int rank_ = 0, size_ = 0, local_rank_ = 0, local_size_ = 0;
};

}  // namespace canele::perf::progress
