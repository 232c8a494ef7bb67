// SPDX-License-Identifier: BSD-3-Clause
//
// Clock: the processor's cycle counter, in microseconds; and the work that is computed beside communication. Any
// thread.
//
// All ranks of a host read one counter, so their dates compare. On a machine whose counter is not constant, the
// system's monotonic clock is used instead.
#pragma once

#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace canele::perf::progress {

class Clock {
 public:
  Clock() {
    using namespace std::chrono;
    constexpr auto long_enough = milliseconds(50);
    by_cycles_ = constant_counter();
    const Both begin = read_both();
    while (steady_clock::now() - begin.time < long_enough) {
    }
    const Both end = read_both();
    us_per_tick_ =
        duration<double, std::micro>(end.time - begin.time).count() / static_cast<double>(end.tick - begin.tick);
  }

  /// Returns the ticks since an arbitrary date, which is equal on all ranks of this host.
  std::uint64_t now() const {
#if defined(__x86_64__)
    if (by_cycles_) return __rdtsc();
#endif
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }
  double us(std::uint64_t ticks) const { return static_cast<double>(ticks) * us_per_tick_; }
  std::uint64_t ticks(double us) const { return static_cast<std::uint64_t>(us / us_per_tick_); }

 private:
  struct Both {
    std::uint64_t tick;
    std::chrono::steady_clock::time_point time;
  };
  /// Reads both clocks at one moment: the quickest of several readings, because a thread may lose its core between
  /// them.
  Both read_both() const {
    constexpr int tries = 20;
    Both best{};
    std::uint64_t least = ~std::uint64_t{0};
    for (int i = 0; i < tries; ++i) {
      const std::uint64_t before = now();
      const auto time = std::chrono::steady_clock::now();
      const std::uint64_t took = now() - before;
      if (took >= least) continue;
      least = took;
      best = {before + took / 2, time};
    }
    return best;
  }
  static bool constant_counter() {
#if defined(__x86_64__)
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);) {
      if (line.rfind("flags", 0) == 0) {
        return line.find("constant_tsc") != std::string::npos && line.find("nonstop_tsc") != std::string::npos;
      }
    }
#endif
    return false;
  }

  bool by_cycles_ = false;
  double us_per_tick_ = 0;
};

/// Performs work of a fixed size, in registers: no memory access, no call.
inline void compute(std::uint64_t turns) {
  std::uint64_t x = 88172645463325252u;  // xorshift64 (Marsaglia, Journal of Statistical Software 8, 2003)
  for (; turns > 0; --turns) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    asm volatile("" : "+r"(x));  // prevents computation at compile time
  }
}

/// Returns the microseconds of one turn of compute(): the least of several tries, so that disturbed ones do not count.
inline double us_per_turn(const Clock& clock) {
  constexpr std::uint64_t turns = 50'000;
  constexpr int tries = 50;
  double least = 0;
  for (int i = 0; i < tries; ++i) {
    const std::uint64_t begin = clock.now();
    compute(turns);
    const double took = clock.us(clock.now() - begin) / static_cast<double>(turns);
    if (i == 0 || took < least) least = took;
  }
  return least;
}

/// Returns the microseconds of processor time that this process has used, all threads, user and system.
inline double cpu_us() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  constexpr double us_per_s = 1e6;
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * us_per_s +
         static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

}  // namespace canele::perf::progress
