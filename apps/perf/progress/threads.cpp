// SPDX-License-Identifier: BSD-3-Clause
//
// Threads: ping-pongs of many threads at once. The figures: options.cpp.
//
// N-to-N runs for a fixed time, because it measures each thread's share. All other patterns do a fixed amount of work.
#include <algorithm>
#include <atomic>
#include <thread>

#include "../statistics.hpp"
#include "benchmarks.hpp"

namespace canele::perf::progress {
namespace {

constexpr int go_tag = 0, first_tag = 1;  // thread i: first_tag + i
constexpr std::uint64_t last_ball = ~std::uint64_t{0};

/// Sends a ball to the other rank and receives it back.
void ping(Link& link, int tag, std::uint64_t ball) {
  std::uint64_t back = 0;
  send(link, 1, tag, &ball, sizeof ball);
  receive(link, 1, tag, &back, sizeof back);
  if (back != ball) link.abort("ball " + std::to_string(ball) + " came back as " + std::to_string(back));
}

/// Returns balls until the last one.
void pong(Link& link, int tag) {
  for (std::uint64_t ball = 0; ball != last_ball;) {
    receive(link, 0, tag, &ball, sizeof ball);
    send(link, 0, tag, &ball, sizeof ball);
  }
}

void meet(Link& link) {
  std::uint64_t ball = 0;
  if (link.rank() == 0) return ping(link, go_tag, ball);
  receive(link, 0, go_tag, &ball, sizeof ball);
  send(link, 0, go_tag, &ball, sizeof ball);
}

class Threads {
 public:
  explicit Threads(Bench& bench) : bench_(bench) {}

  void run() {
    for (const std::string& pattern : bench_.options.patterns) {
      for (const int n : bench_.options.threads) pattern == "1-to-N" ? one_to_many(n) : many_to_many(n);
    }
  }

 private:
  double one_way_us(std::uint64_t begin) const { return bench_.clock.us(bench_.clock.now() - begin) / 2; }
  void answer(int n);
  void one_to_many(int n);
  void many_to_many(int n);
  void batch(int n, std::vector<double>& times, std::vector<std::uint64_t>& counts);

  Bench& bench_;
};

/// Runs n threads that return balls. Rank 1 only.
void Threads::answer(int n) {
  std::vector<std::thread> all;
  meet(bench_.link);
  for (int i = 0; i < n; ++i) all.emplace_back([this, i] { pong(bench_.link, first_tag + i); });
  for (std::thread& one : all) one.join();
}

void Threads::one_to_many(int n) {
  Link& link = bench_.link;
  if (link.rank() != 0) return answer(n);
  meet(link);
  std::vector<double> medians, tails, slowest;
  constexpr int warm_up = 3;
  for (int i = 0; i < warm_up * n; ++i) ping(link, first_tag + i % n, 1);
  for (int batch = 0; batch < bench_.options.batches; ++batch) {
    std::vector<double> times;
    times.reserve(static_cast<std::size_t>(bench_.options.rounds));
    for (int i = 0; i < bench_.options.rounds; ++i) {
      const std::uint64_t begin = bench_.clock.now();
      ping(link, first_tag + i % n, static_cast<std::uint64_t>(i));
      times.push_back(one_way_us(begin));
    }
    medians.push_back(quantile(times, 0.5));
    tails.push_back(quantile(times, 0.99));
    slowest.push_back(quantile(times, 1));
  }
  for (int i = 0; i < n; ++i) ping(link, first_tag + i, last_ball);
  bench_.report.print(
      {"threads",
       {{"pattern", "1-to-N"}, {"threads", n}},
       {{"median", quantile(medians, 0.5)}, {"p99", quantile(tails, 0.5)}, {"max", quantile(slowest, 1)}},
       {{"median", medians}, {"p99", tails}, {"max", slowest}}});
}

/// Runs one batch. Stores the times of a sample of the ping-pongs, and how many each thread has done. Rank 0 only.
void Threads::batch(int n, std::vector<double>& times, std::vector<std::uint64_t>& counts) {
  constexpr std::size_t most_samples = 2'000'000;
  std::atomic<bool> done{false};
  std::vector<std::vector<double>> parts(static_cast<std::size_t>(n));
  std::vector<std::thread> all;
  counts.assign(static_cast<std::size_t>(n), 0);
  const auto play = [&](std::size_t i) {
    std::vector<double>& part = parts[i];
    part.reserve(most_samples / static_cast<std::size_t>(n));
    std::uint64_t count = 0;
    do {  // once at least: on a slow machine the time is over before a thread has begun
      const std::uint64_t begin = bench_.clock.now();
      ping(bench_.link, first_tag + static_cast<int>(i), count);
      if (part.size() < part.capacity()) part.push_back(one_way_us(begin));
      ++count;
    } while (!done.load(std::memory_order_relaxed));
    counts[i] = count;  // in time: before the last ball
    ping(bench_.link, first_tag + static_cast<int>(i), last_ball);
  };
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) all.emplace_back(play, i);
  std::this_thread::sleep_for(std::chrono::duration<double>(bench_.options.seconds));
  done = true;
  for (std::thread& one : all) one.join();
  for (const auto& part : parts) times.insert(times.end(), part.begin(), part.end());
}

void Threads::many_to_many(int n) {
  std::vector<double> rates, medians, tails, slowest;
  for (int i = 0; i < bench_.options.batches; ++i) {
    if (bench_.link.rank() != 0) {
      answer(n);
      continue;
    }
    meet(bench_.link);
    std::vector<double> times;
    std::vector<std::uint64_t> counts;
    const std::uint64_t begin = bench_.clock.now();
    batch(n, times, counts);
    const double seconds = bench_.clock.us(bench_.clock.now() - begin) / 1e6;
    double sum = 0;
    for (const std::uint64_t count : counts) sum += static_cast<double>(count);
    rates.push_back(2 * sum / seconds);
    slowest.push_back(static_cast<double>(*std::min_element(counts.begin(), counts.end())) * n / std::max(1.0, sum));
    medians.push_back(quantile(times, 0.5));
    tails.push_back(quantile(times, 0.99));
  }
  if (bench_.link.rank() != 0) return;
  const double median = quantile(medians, 0.5), tail = quantile(tails, 0.5);
  bench_.report.print({"threads",
                       {{"pattern", "N-to-N"}, {"threads", n}},
                       {{"rate", quantile(rates, 0.5)},
                        {"slowest", quantile(slowest, 0.5)},
                        {"median", median},
                        {"p99", tail},
                        {"p99_to_median", tail / median}},
                       {{"rate", rates}, {"slowest", slowest}, {"median", medians}, {"p99", tails}}});
}

}  // namespace

void threads(Bench& bench) { Threads(bench).run(); }

}  // namespace canele::perf::progress
