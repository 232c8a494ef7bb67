// SPDX-License-Identifier: BSD-3-Clause
//
// Work: rows of a matrix product, equally many on every core of this rank; a fixed amount, however long it takes.
//
// Threads: the main thread calls run(); the object has one more thread for every further core. The matrices of a thread
// stay in its core's cache. Losing the core therefore slows it more than contention for memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace canele::perf::nbc {

/// One thread's product of two square matrices, row after row, from the top again at the end.
class Product {
 public:
  Product();
  void rows(std::uint64_t count);

 private:
  static constexpr std::size_t side = 128;  // 128 KiB each
  std::vector<double> left_, right_, result_;
  std::size_t next_ = 0;
};

class Work {
 public:
  /// Pins the calling thread to cores[0], whose part it does, and the other threads to the other cores. Throws if one
  /// is not available.
  Work(const std::vector<int>& cores, bool pin);
  ~Work();
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  /// Computes `rows` on each core; returns when the slowest is done.
  void run(std::uint64_t rows);

 private:
  void help();

  Product own_;
  std::uint64_t rows_ = 0;
  std::atomic<std::uint32_t> round_{0};  ///< a new value makes the helpers begin
  std::atomic<std::uint32_t> busy_{0};   ///< helpers that are not done
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> helpers_;
};

}  // namespace canele::perf::nbc
