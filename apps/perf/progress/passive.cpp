// SPDX-License-Identifier: BSD-3-Clause
//
// Passive: one-sided operations on the memory of a rank that computes and makes no call. The figures: options.cpp.
//
// Rank 0 is the origin, rank 1 the target. Rank 2 sleeps; in the beginning it tells rank 0 when the first computation
// of rank 1 begins, so that no message goes between ranks 0 and 1 before the first operation.
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "../statistics.hpp"
#include "benchmarks.hpp"
#include "window.hpp"

namespace canele::perf::progress {
namespace {

constexpr int window_tag = 1, date_tag = 2, end_tag = 3, count_tag = 4;
constexpr int origin = 0, target = 1, relay = 2;

/// Waits for a message in naps: a rank that polls would take a core from the others.
void receive_asleep(Link& link, int from, int tag, void* data, std::size_t size) {
  Link::Request request{};
  link.irecv(from, tag, data, size, request);
  while (!link.test(request)) {
    const timespec nap{0, 1'000'000};
    nanosleep(&nap, nullptr);
  }
}

class Passive {
 public:
  Passive(Bench& bench, std::size_t words) : bench_(bench), window_(bench.link, window_tag, words), words_(words) {}

  void take_part() {
    Link& link = bench_.link;
    if (link.rank() == origin) lead();
    if (link.rank() == target) compute_all();
    if (link.rank() == relay) {
      std::uint64_t date = 0;
      receive(link, target, date_tag, &date, sizeof date);
      send(link, origin, date_tag, &date, sizeof date);
      receive_asleep(link, origin, end_tag, &date, sizeof date);
    }
    link.barrier();
  }

 private:
  int rounds() const { return bench_.options.batches; }

  /// Computes for the time that the options say, once in each round. Then checks what the origin has done.
  void compute_all() {
    Link& link = bench_.link;
    const Clock& clock = bench_.clock;
    for (int round = 0; round < rounds(); ++round) {
      const std::uint64_t begin = clock.now();
      send(link, round == 0 ? relay : origin, date_tag, &begin, sizeof begin);
      const std::uint64_t end = begin + clock.ticks(bench_.options.seconds * 1e6);
      while (clock.now() < end) {
      }
      std::uint64_t over = 0;
      receive(link, origin, end_tag, &over, sizeof over);
    }
    std::int64_t wanted = 0;
    receive(link, origin, count_tag, &wanted, sizeof wanted);
    const auto right = [wanted](std::int64_t word) { return word == wanted; };
    if (!std::ranges::all_of(window_.words(), right)) link.abort("passive: wrong data at the target");
  }

  /// Waits for the date at which the target's computation has begun, then for a part of its time, drawn at random.
  void await_computation(int round, std::mt19937& random) {
    const Clock& clock = bench_.clock;
    std::uint64_t begin = 0;
    receive(bench_.link, round == 0 ? relay : target, date_tag, &begin, sizeof begin);
    std::uniform_real_distribution<double> part(0.2, 0.6);  // the operation needs the rest, if nothing serves it
    const std::uint64_t date = begin + clock.ticks(part(random) * bench_.options.seconds * 1e6);
    while (clock.now() < date) {
    }
  }

  void lead() {
    Link& link = bench_.link;
    const std::string& operation = bench_.options.operation;
    std::mt19937 random(1);
    std::vector<std::int64_t> words(words_);
    std::vector<double> times;
    std::int64_t wanted = 0;
    for (int round = 0; round < rounds(); ++round) {
      await_computation(round, random);
      if (operation == "put") std::ranges::fill(words, wanted = round + 1);
      if (operation == "accumulate") std::ranges::fill(words, 1), ++wanted;
      const std::uint64_t begin = bench_.clock.now();
      if (operation == "put") window_.put(words);
      if (operation == "get") window_.get(words);
      if (operation == "accumulate") window_.accumulate(words);
      times.push_back(bench_.clock.us(bench_.clock.now() - begin));
      send(link, target, end_tag, &begin, sizeof begin);
    }
    send(link, target, count_tag, &wanted, sizeof wanted);
    send(link, relay, end_tag, &wanted, sizeof wanted);
    const auto [least, most] = std::ranges::minmax(times);
    bench_.report.print({"passive",
                         {{"operation", operation}, {"size", words_ * sizeof(std::int64_t)}},
                         {{"first", times.front()},
                          {"median", quantile(times, 0.5)},
                          {"p90", quantile(times, 0.9)},
                          {"least", least},
                          {"worst", most}},
                         {{"times", times}}});
  }

  Bench& bench_;
  Window window_;
  std::size_t words_;
};

}  // namespace

void passive(Bench& bench) {
  if (bench.link.size() != 3)
    throw std::runtime_error(std::to_string(bench.link.size()) + " ranks; expected: three on one host");
  const std::uint64_t size = bench.options.sizes.front();
  if (size == 0 || size % sizeof(std::int64_t) != 0)
    throw std::runtime_error("--size " + std::to_string(size) + "; expected: a multiple of 8");
  Passive(bench, size / sizeof(std::int64_t)).take_part();
}

}  // namespace canele::perf::progress
