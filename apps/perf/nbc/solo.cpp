// SPDX-License-Identifier: BSD-3-Clause
//
// Locks, and the work alone.
#include "solo.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "../pin.hpp"
#include "../statistics.hpp"
#include "layout.hpp"

namespace canele::perf::nbc {

FileLock::FileLock(const char* file, Kind kind) : file_(open(file, O_RDONLY | O_CLOEXEC)) {
  const int operation = kind == Kind::exclusive ? LOCK_EX : LOCK_SH;
  while (file_ < 0 || flock(file_, operation) != 0) {
    if (file_ >= 0 && errno == EINTR) continue;
    throw std::runtime_error("cannot lock " + std::string(file) + ": " + std::strerror(errno));
  }
}

FileLock::~FileLock() { close(file_); }

Before::Before(const Options& options, const std::vector<int>& start_on) : allowed(allowed_cores()), options_(options) {
  constexpr double target_us = 10'000;
  constexpr std::uint64_t some = 256;
  rows_ = some;
  us_per_row = measure() / static_cast<double>(some);
  rows_ = static_cast<std::uint64_t>(target_us / us_per_row) + 1;
  alone_ = measure();
  if (options.pin) pin_thread(start_on);
}

double Before::measure() const {
  constexpr int tries = 15;
  constexpr double calm = 0.25;  // other ranks may still be starting
  Work work(cores_of(options_, allowed, 0), options_.pin);
  const FileLock turn("/proc/self/exe", FileLock::Kind::exclusive);
  std::vector<double> times;
  for (int i = 0; i < tries; ++i) {
    const std::uint64_t begin = clock.now();
    work.run(rows_);
    times.push_back(clock.us(clock.now() - begin));
  }
  return quantile(times, calm);
}

}  // namespace canele::perf::nbc
