// SPDX-License-Identifier: BSD-3-Clause
//
// Window, by MPI: MPI_Win_create, one epoch of MPI_Win_lock_all, a flush after each operation. Threads: as in
// window.hpp.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "link.hpp"

namespace canele::perf::progress {

class Window {
 public:
  Window(Link& link, int /*tag*/, std::size_t words) : memory_(words) {
    const auto bytes = static_cast<MPI_Aint>(link.rank() == 1 ? words * sizeof(std::int64_t) : 0);
    MPI_Win_create(memory_.data(), bytes, sizeof(std::int64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &window_);
    MPI_Win_lock_all(0, window_);
  }
  ~Window() {
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  // Each returns when the operation is over at the target.
  void put(std::span<const std::int64_t> from) {
    const int count = static_cast<int>(from.size());
    MPI_Put(from.data(), count, MPI_INT64_T, 1, 0, count, MPI_INT64_T, window_);
    MPI_Win_flush(1, window_);
  }
  void get(std::span<std::int64_t> into) {
    const int count = static_cast<int>(into.size());
    MPI_Get(into.data(), count, MPI_INT64_T, 1, 0, count, MPI_INT64_T, window_);
    MPI_Win_flush(1, window_);
  }
  void accumulate(std::span<const std::int64_t> from) {
    const int count = static_cast<int>(from.size());
    MPI_Accumulate(from.data(), count, MPI_INT64_T, 1, 0, count, MPI_INT64_T, MPI_SUM, window_);
    MPI_Win_flush(1, window_);
  }

  /// Returns the memory of rank 1, on that rank.
  std::span<const std::int64_t> words() {
    MPI_Win_sync(window_);
    return memory_;
  }

 private:
  std::vector<std::int64_t> memory_;
  MPI_Win window_ = MPI_WIN_NULL;
};

}  // namespace canele::perf::progress
