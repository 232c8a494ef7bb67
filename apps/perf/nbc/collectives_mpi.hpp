// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives, by MPI. Counts are int, so a block is at most 16 GiB. One thread.
#pragma once

#include <mpi.h>

#include "operation.hpp"

namespace canele::perf::nbc {

class Collectives {
 public:
  Collectives() { MPI_Comm_dup(MPI_COMM_WORLD, &all_); }
  ~Collectives() { MPI_Comm_free(&all_); }
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;

  void start(const Call& call, MPI_Request& request) {
    const int count = static_cast<int>(call.count);
    switch (call.operation) {
      case Operation::barrier:
        MPI_Ibarrier(all_, &request);
        return;
      case Operation::bcast:
        MPI_Ibcast(call.output, count, MPI_DOUBLE, 0, all_, &request);
        return;
      case Operation::reduce:
        MPI_Ireduce(call.input, call.output, count, MPI_DOUBLE, MPI_SUM, 0, all_, &request);
        return;
      case Operation::allreduce:
        MPI_Iallreduce(call.input, call.output, count, MPI_DOUBLE, MPI_SUM, all_, &request);
        return;
      case Operation::allgather:
        MPI_Iallgather(call.input, count, MPI_DOUBLE, call.output, count, MPI_DOUBLE, all_, &request);
        return;
      case Operation::alltoall:
        MPI_Ialltoall(call.input, count, MPI_DOUBLE, call.output, count, MPI_DOUBLE, all_, &request);
        return;
    }
  }

 private:
  MPI_Comm all_ = MPI_COMM_NULL;
};

}  // namespace canele::perf::nbc
