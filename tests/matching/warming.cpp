// SPDX-License-Identifier: BSD-3-Clause
//
// The benchmark of the cache warmer. It has one thread of its own, pinned to another core than the caller.
//
// Only the search is timed. Evicting and warming happen before it, as while a program computes.
#include "warming.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "comm/matching/alternatives/cache_warmer.hpp"
#include "comm/matching/alternatives/factory.hpp"
#include "comm/matching/matcher.hpp"

namespace canele::comm {
namespace {

using Clock = std::chrono::steady_clock;

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(Clock::now().time_since_epoch()).count());
}

void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);  // where pinning is not allowed, the figures are worse
}

enum class Caches { hot, cold, warmed_elsewhere, warmed_here };

/// N receives, and the search for the last of them.
class Queue {
 public:
  Queue(const std::string& name, std::size_t count)
      : cache_warmer_(1),
        matcher_(1, matching::make_alternative(name, 1, matching::best_isa(), &cache_warmer_.regions)),
        receives_(count),
        other_(std::size_t{96} << 20) {
    for (std::size_t i = 0; i < count; ++i) {
      receives_[i].tag = i * 0x10001;
      matcher_.post(session_, receives_[i]);
    }
  }

  /// Returns the median of a search, in ns.
  double search_ns(Caches caches, double seconds) {
    std::atomic<bool> stop{false};
    std::thread warming;
    if (caches == Caches::warmed_elsewhere) warming = std::thread([&] { warm_until(stop); });
    std::vector<double> all;
    for (const std::uint64_t begin = now_ns(); static_cast<double>(now_ns() - begin) < seconds * 1e9;) {
      if (caches != Caches::hot) push_out();
      if (caches == Caches::warmed_elsewhere) await_pass();
      if (caches == Caches::warmed_here) pass();
      all.push_back(timed_search());
    }
    stop = true;
    if (warming.joinable()) warming.join();
    std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
    return all[all.size() / 2];
  }

 private:
  double timed_search() {
    PostedNode& last = receives_.back();
    const std::uint64_t begin = now_ns();
    PostedNode* found = matcher_.arrive(session_, last.tag, 0);
    const std::uint64_t end = now_ns();
    if (found != &last || matcher_.post(session_, last) != nullptr) std::abort();
    return static_cast<double>(end - begin);
  }
  void push_out() {
    for (std::size_t i = 0; i < other_.size(); i += 64) other_[i] = static_cast<char>(other_[i] + 1);
  }
  void run_if_due() {
    if (cache_warmer_.due(now_ns())) matching::CacheWarmer::run(cache_warmer_);
  }
  void warm_until(const std::atomic<bool>& stop) {
    pin(1);
    while (!stop.load(std::memory_order_relaxed)) run_if_due();
  }
  /// Waits for a pass that has begun after this call.
  void await_pass() {
    for (const std::uint64_t passes = cache_warmer_.passes(); cache_warmer_.passes() < passes + 2;) {
    }
  }
  void pass() {
    for (const std::uint64_t passes = cache_warmer_.passes(); cache_warmer_.passes() == passes;) run_if_due();
  }

  matching::CacheWarmer cache_warmer_;
  CountingMatcher matcher_;
  MatchSession session_;
  std::vector<PostedNode> receives_;
  std::vector<char> other_;  ///< the data on which the program computes
};

}  // namespace

void compare_warming(double seconds) {
  pin(0);
  std::printf("ns for a search to the end\n| matcher | N | hot | cold | warmed, other core | warmed, same core |\n");
  std::printf("|---|---|---|---|---|---|\n");
  for (const char* name : {"arrays", "vector", "fuzzy"}) {
    for (const std::size_t count : {16, 64, 256, 1'024, 4'096}) {
      Queue queue(name, count);
      std::printf("| %s | %zu |", name, count);
      for (const Caches caches : {Caches::hot, Caches::cold, Caches::warmed_elsewhere, Caches::warmed_here}) {
        std::printf(" %.0f |", queue.search_ns(caches, seconds));
      }
      std::printf("\n");
    }
  }
}

}  // namespace canele::comm
