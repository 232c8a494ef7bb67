// SPDX-License-Identifier: BSD-3-Clause
//
// The cost of an idle library: the same work before it is started and after, one rank at a time.
//
// main makes a Before, first of all; run() measures again later. Threads: the main thread. Ranks take turns by locks on
// files. These exist without a library, and a rank that waits for one sleeps.
#pragma once

#include "../progress/clock.hpp"
#include "metrics.hpp"
#include "options.hpp"
#include "work.hpp"

namespace canele::perf::nbc {

/// A lock on a file that all ranks of the host have, held for the object's lifetime. A rank that waits for it sleeps.
class FileLock {
 public:
  enum class Kind { exclusive, shared };
  FileLock(const char* file, Kind kind);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int file_;
};

/// What is known before the library is started.
class Before {
 public:
  /// Measures. Then lets this thread, and thus the threads to come, run on these cores while the library starts.
  Before(const Options& options, const std::vector<int>& start_on);

  /// Repeats the work and returns its time divided by the earlier one. Every rank calls it; `meet` returns when all of
  /// them have begun.
  template <typename Meet>
  double impact(Meet&& meet) const {
    double with_library = 0;
    {
      const FileLock here(meeting_place, FileLock::Kind::shared);
      meet();
      with_library = measure();
    }
    const FileLock all_done(meeting_place, FileLock::Kind::exclusive);  // here, as waiting in the library may spin
    return r_mpi_impact(with_library, alone_);
  }

  const progress::Clock clock;
  const std::vector<int> allowed;
  double us_per_row = 0;  ///< of one thread

 private:
  static constexpr const char* meeting_place = ".";  // launchers give all ranks the same working directory

  double measure() const;

  const Options& options_;
  std::uint64_t rows_ = 1;
  double alone_ = 0;
};

}  // namespace canele::perf::nbc
