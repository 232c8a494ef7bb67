// SPDX-License-Identifier: BSD-3-Clause
//
// What calls on the fast path read first, together in one cache line. Any thread reads; it is written seldom.
#pragma once

#include <atomic>
#include <climits>
#include <cstdint>

namespace canele::mpi {

class Communicator;

struct alignas(64) FastCalls {
  /// MPI_COMM_WORLD while calls have no bookkeeping to do; see enable_fast_path().
  std::atomic<Communicator*> world{nullptr};
  /// The largest count of elements for calls that use a buffer without a look at its address. 0 once a buffer may be
  /// device memory: the call then takes another path, which looks.
  std::atomic<std::uint64_t> direct_count_limit{INT_MAX};
};
extern constinit FastCalls fast_calls __attribute__((visibility("hidden")));

inline bool is_direct_count(std::int64_t count) {
  return static_cast<std::uint64_t>(count) <= fast_calls.direct_count_limit.load(std::memory_order_relaxed);
}

}  // namespace canele::mpi
