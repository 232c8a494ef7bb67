// SPDX-License-Identifier: BSD-3-Clause
//
// The round of alltoall without any library. There is a flag on a cache line of its own for each pair of ranks. A rank
// yields while a flag is missing. What remains of a round is the switches between ranks that share cores, and the
// transfer of the lines.
//
// main of canele-perf calls it, before any job is started. Threads: one in each of the processes that it forks. In the
// second row, a rank that misses only flags of other cores polls for them longer before it yields. Otherwise the cores
// run one after the other, and switch once more than necessary in every other round.
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>

#include "../pin.hpp"
#include "../statistics.hpp"
#include "benchmarks.hpp"

namespace canele::perf::progress {
namespace {

struct alignas(64) Flag {
  std::atomic<std::uint64_t> round{0};
};

struct Shared {
  std::atomic<long> switches{0};
  Flag flags[1];  ///< [to][from]
};

class Ranks {
 public:
  Ranks(const Options& options, int polls)
      : options_(options), polls_(polls), ranks_(static_cast<std::size_t>(options.ranks)) {
    const std::size_t bytes = sizeof(Shared) + ranks_ * ranks_ * sizeof(Flag);
    void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::runtime_error("no memory for flags");
    shared_ = static_cast<Shared*>(at);  // zero bytes are flags that have not been raised
  }

  void run() {
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      const pid_t child = fork();
      if (child < 0) throw std::runtime_error("cannot fork");
      if (child == 0) be(rank);
    }
    bool well = true;
    int status = 0;
    while (::wait(&status) > 0) well = well && status == 0;
    if (!well) throw std::runtime_error("a rank has failed");
  }

 private:
  [[noreturn]] void be(std::size_t rank) {
    try {
      const std::vector<int> cores = options_.cores.empty() ? allowed_cores() : options_.cores;
      if (options_.pin) pin_thread({cores.at(rank % cores.size())});
      cores_ = cores.size();
      measure(rank);
    } catch (const std::exception& problem) {
      std::fprintf(stderr, "canele-perf: %s\n", problem.what());
      std::_Exit(1);
    }
    std::fflush(stdout);
    std::_Exit(0);
  }
  void measure(std::size_t rank) {
    const Clock clock;
    std::vector<double> times;
    round(rank);
    const long before = switches();
    for (int batch = 0; batch < options_.batches; ++batch) {
      const std::uint64_t begin = clock.now();
      for (int i = 0; i < options_.rounds; ++i) round(rank);
      times.push_back(clock.us(clock.now() - begin) / options_.rounds);
    }
    shared_->switches += switches() - before;
    round(rank);  // now all of them exist
    if (rank != 0) return;
    const double rounds = static_cast<double>(options_.batches) * options_.rounds * options_.ranks;
    Report(options_.json)
        .print({"bare",
                {{"looks", polls_}, {"ranks", ranks_}},
                {{"median", quantile(times, 0.5)},
                 {"p10", quantile(times, 0.1)},
                 {"p90", quantile(times, 0.9)},
                 {"switches", static_cast<double>(shared_->switches.load()) / rounds}},
                {{"times", times}}});
  }
  Flag& flag(std::size_t to, std::size_t from) { return shared_->flags[to * ranks_ + from]; }
  void round(std::size_t rank) {
    ++round_;
    for (std::size_t k = 1; k < ranks_; ++k)
      flag((rank + k) % ranks_, rank).round.store(round_, std::memory_order_release);
    for (int polls = 0;;) {
      bool here = false, elsewhere = false;
      for (std::size_t k = 1; k < ranks_; ++k) {
        const std::size_t from = (rank + k) % ranks_;
        const bool missing = flag(rank, from).round.load(std::memory_order_acquire) < round_;
        (from % cores_ == rank % cores_ ? here : elsewhere) |= missing;
      }
      if (!here && !elsewhere) return;
      if (!here && ++polls <= polls_) continue;
      sched_yield();
      polls = 0;
    }
  }
  static long switches() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return used.ru_nvcsw + used.ru_nivcsw;
  }

  const Options& options_;
  const int polls_;
  const std::size_t ranks_;
  std::size_t cores_ = 1;
  std::uint64_t round_ = 0;
  Shared* shared_ = nullptr;
};

}  // namespace

void bare_alltoall(const Options& options) {
  for (const int polls : {0, 200}) Ranks(options, polls).run();
}

}  // namespace canele::perf::progress
