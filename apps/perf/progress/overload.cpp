// SPDX-License-Identifier: BSD-3-Clause
//
// Overload: how soon a communicating thread gets a core that other threads compute on. The figures: options.cpp.
//
// The computing threads are those of both ranks, on the cores of both.
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "../statistics.hpp"
#include "benchmarks.hpp"

namespace canele::perf::progress {
namespace {

constexpr int data_tag = 1;

/// Returns the scheduler's slice in us, as Linux 6.12 and later report it; else 3 ms, the usual one.
double slice_us() {
  constexpr double usual = 3000, ns_per_us = 1000;
  struct {  // struct sched_attr, which glibc does not declare
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime, deadline, period;
  } attributes{};
  const bool told = syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) == 0 && attributes.runtime != 0;
  return told ? static_cast<double>(attributes.runtime) / ns_per_us : usual;
}

class Crowd {
 public:
  explicit Crowd(int threads) {
    constexpr std::uint64_t turns = 10'000;
    for (int i = 0; i < threads; ++i) {
      all_.emplace_back([this] {
        while (!done_.load(std::memory_order_relaxed)) compute(turns);
      });
    }
  }
  ~Crowd() {
    done_ = true;
    for (std::thread& one : all_) one.join();
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

 private:
  std::atomic<bool> done_{false};
  std::vector<std::thread> all_;
};

void play(Bench& bench, std::vector<char>& buffer, std::vector<double>* times) {
  Link& link = bench.link;
  for (int i = 0; i < bench.options.rounds; ++i) {
    const std::uint64_t begin = bench.clock.now();
    if (link.rank() == 0) send(link, 1, data_tag, buffer.data(), buffer.size());
    receive(link, 1 - link.rank(), data_tag, buffer.data(), buffer.size());
    if (link.rank() != 0) send(link, 0, data_tag, buffer.data(), buffer.size());
    if (times != nullptr) times->push_back(bench.clock.us(bench.clock.now() - begin) / 2);
  }
}

}  // namespace

void overload(Bench& bench) {
  const double slice = slice_us();
  for (const std::uint64_t size : bench.options.sizes) {
    std::vector<char> buffer(size);
    double unloaded = 0;
    play(bench, buffer, nullptr);  // for connections and pages
    for (const int threads : bench.options.threads) {
      std::vector<double> times;
      {
        const Crowd crowd(threads);
        for (int i = 0; i < bench.options.batches; ++i) play(bench, buffer, &times);
      }
      if (bench.link.rank() != 0) continue;
      const double median = quantile(times, 0.5), most = quantile(times, 1);
      if (unloaded == 0) unloaded = median;
      bench.report.print({"overload",
                          {{"size", size}, {"threads", threads}},
                          {{"min", quantile(times, 0)},
                           {"median", median},
                           {"p99", quantile(times, 0.99)},
                           {"max", most},
                           {"slice_us", slice},
                           {"above", (most - unloaded) / slice}},
                          {{"times", times}}});
    }
  }
}

}  // namespace canele::perf::progress
