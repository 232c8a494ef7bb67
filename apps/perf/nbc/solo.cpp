// SPDX-License-Identifier: BSD-3-Clause
//
// Turns and the work alone. See solo.hpp (who, threads, and the surprise).
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
#include "metrics.hpp"

namespace canele::perf::nbc {

Turn::Turn() : file_(open("/proc/self/exe", O_RDONLY | O_CLOEXEC)) {
  int code = file_ < 0 ? -1 : flock(file_, LOCK_EX);
  while (code != 0 && file_ >= 0 && errno == EINTR) code = flock(file_, LOCK_EX);
  if (code != 0) throw std::runtime_error(std::string("cannot lock this program's file: ") + std::strerror(errno));
}

Turn::~Turn() { close(file_); }

Before::Before(const Options& options, int progress_core) : allowed(allowed_cores()), options_(options) {
  constexpr double target_us = 5'000;
  constexpr std::uint64_t some = 256;
  rows_ = some;
  us_per_row = measure() / static_cast<double>(some);
  rows_ = static_cast<std::uint64_t>(target_us / us_per_row) + 1;
  alone_ = measure();
  if (options.pin) pin_thread(progress_core < 0 ? allowed : std::vector<int>{progress_core});
}

double Before::measure() const {
  constexpr int tries = 15;
  Work work(cores_of(options_, allowed, 0), options_.pin);
  const Turn turn;
  std::vector<double> times;
  for (int i = 0; i < tries; ++i) {
    const std::uint64_t begin = clock.now();
    work.run(rows_);
    times.push_back(clock.us(clock.now() - begin));
  }
  return quantile(times, 0.5);
}

double Before::impact() const { return r_mpi_impact(measure(), alone_); }

}  // namespace canele::perf::nbc
