// SPDX-License-Identifier: BSD-3-Clause
#include "still_clock.hpp"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace {
std::atomic<bool> stands{false};
timespec stopped_at{};

int read_clock(clockid_t clock, timespec* time) { return static_cast<int>(::syscall(SYS_clock_gettime, clock, time)); }
}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  if (!stands) return read_clock(clock, time);
  *time = stopped_at;
  return 0;
}

namespace canele::test::budget {

void stop_clock(bool stopped) {
  if (stopped) read_clock(CLOCK_MONOTONIC, &stopped_at);
  stands = stopped;
}

}  // namespace canele::test::budget
