// SPDX-License-Identifier: BSD-3-Clause
//
// What a library costs that is only there: the same work before it is started and after, a rank at a time.
//
// Who: main makes a Before, first of all; run() then measures again. Threads: the main thread.
// Surprise: ranks take turns by a lock on this program's file: it is there without a library, and who waits for it
//     sleeps.
#pragma once

#include "../progress/clock.hpp"
#include "options.hpp"
#include "work.hpp"

namespace canele::perf::nbc {

/// This rank has a core for itself while it lives, as far as the other ranks of the host are concerned.
class Turn {
 public:
  Turn();
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  int file_;
};

/// What is known before the library is started.
class Before {
 public:
  /// Measures; then lets this thread, and so the threads to come, run anywhere again, or on `progress_core` (-1: none).
  Before(const Options& options, int progress_core);

  /// The same work now, to that.
  double impact() const;

  const progress::Clock clock;
  const std::vector<int> allowed;
  double us_per_row = 0;  ///< of one thread

 private:
  double measure() const;

  const Options& options_;
  std::uint64_t rows_ = 1;
  double alone_ = 0;
};

}  // namespace canele::perf::nbc
