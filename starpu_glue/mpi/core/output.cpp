// SPDX-License-Identifier: BSD-3-Clause
//
// Rejected: exit() instead of all this. It runs the program's destructors beside threads that use what they destroy.
#include "starpu_glue/mpi/core/output.hpp"

#include <chrono>
#include <cstdio>
#include <future>
#include <thread>
#include <utility>

#include "starpu_glue/mpi/core/state.hpp"

/// libgfortran's FLUSH; NULL stands for all units. There only in a process that uses libgfortran.
extern "C" [[gnu::weak]] void _gfortran_flush_i4(const int* unit);

namespace canele::mpi {

void flush_output() noexcept try {
  if (in_child) return;
  std::packaged_task<void()> flush([] {
    std::fflush(nullptr);
    if (_gfortran_flush_i4 != nullptr) _gfortran_flush_i4(nullptr);
  });
  const std::future<void> done = flush.get_future();
  std::thread(std::move(flush)).detach();
  done.wait_for(std::chrono::seconds(1));
} catch (...) {  // without memory or threads the process ends as it is
}

}  // namespace canele::mpi
