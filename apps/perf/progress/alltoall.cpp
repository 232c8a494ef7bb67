// SPDX-License-Identifier: BSD-3-Clause
//
// All to all: the cost when more ranks than cores communicate. The figures: options.cpp.
//
// Content is checked in every batch, in a round that is not timed.
#include <algorithm>
#include <cstring>

#include "../statistics.hpp"
#include "benchmarks.hpp"

namespace canele::perf::progress {
namespace {

constexpr int data_tag = 1, rounds_tag = 2;

class AllToAll {
 public:
  AllToAll(Bench& bench, std::uint64_t size)
      : bench_(bench),
        size_(size),
        ranks_(static_cast<std::size_t>(bench.link.size())),
        own_(static_cast<std::size_t>(bench.link.rank())),
        out_(size * ranks_),
        in_(size * ranks_),
        requests_(2 * ranks_) {}

  void run() {
    const int rounds = bench_.options.rounds != 0 ? bench_.options.rounds : rounds_of_a_batch();
    std::vector<double> times;
    for (int batch = 0; batch < bench_.options.batches; ++batch) {
      checked_round(batch);
      const std::uint64_t begin = bench_.clock.now();
      for (int i = 0; i < rounds; ++i) round();
      times.push_back(bench_.clock.us(bench_.clock.now() - begin) / rounds);
    }
    if (own_ != 0) return;
    bench_.report.print(
        {"alltoall",
         {{"size", size_}, {"ranks", ranks_}},
         {{"median", quantile(times, 0.5)}, {"p10", quantile(times, 0.1)}, {"p90", quantile(times, 0.9)}},
         {{"times", times}}});
  }

 private:
  /// Returns the rounds of a batch, as rank 0 finds them after the ranks are connected. A batch lasts some
  /// milliseconds, longer than a scheduler's tick, so that other load affects every batch alike.
  int rounds_of_a_batch() {
    constexpr double batch_us = 5000;
    constexpr int least = 50, most = 10'000;
    double us = 0;
    for (int attempt = 0; attempt < 2; ++attempt) {
      const std::uint64_t begin = bench_.clock.now();
      for (int i = 0; i < least; ++i) round();
      us = bench_.clock.us(bench_.clock.now() - begin) / least;
    }
    int rounds = static_cast<int>(std::clamp<double>(batch_us / us, least, most));
    tell_all(bench_.link, rounds_tag, &rounds, sizeof rounds);
    return rounds;
  }
  void round() {
    Link& link = bench_.link;
    for (std::size_t k = 1; k < ranks_; ++k) {
      const std::size_t from = (own_ + ranks_ - k) % ranks_;
      link.irecv(static_cast<int>(from), data_tag, &in_[from * size_], size_, requests_[k]);
    }
    for (std::size_t k = 1; k < ranks_; ++k) {
      const std::size_t to = (own_ + k) % ranks_;
      link.isend(static_cast<int>(to), data_tag, &out_[to * size_], size_, requests_[ranks_ + k]);
    }
    for (std::size_t k = 1; k < ranks_; ++k) link.wait(requests_[k]);
    for (std::size_t k = 1; k < ranks_; ++k) link.wait(requests_[ranks_ + k]);
  }
  static char byte(std::size_t from, std::size_t to, int batch) {
    return static_cast<char>(from * 31 + to * 7 + static_cast<std::size_t>(batch));
  }
  void checked_round(int batch) {
    for (std::size_t to = 0; to < ranks_; ++to) std::memset(&out_[to * size_], byte(own_, to, batch), size_);
    round();
    for (std::size_t from = 0; from < ranks_; ++from) {
      const char wanted = byte(from, own_, batch);
      const auto begin = in_.begin() + static_cast<std::ptrdiff_t>(from * size_);
      if (from != own_ &&
          !std::all_of(begin, begin + static_cast<std::ptrdiff_t>(size_), [&](char c) { return c == wanted; }))
        bench_.link.abort("alltoall: the message of rank " + std::to_string(from) + " is wrong");
    }
  }

  Bench& bench_;
  const std::uint64_t size_;
  const std::size_t ranks_, own_;
  std::vector<char> out_, in_;
  std::vector<Link::Request> requests_;
};

}  // namespace

void alltoall(Bench& bench) {
  for (const std::uint64_t size : bench.options.sizes) AllToAll(bench, size).run();
}

}  // namespace canele::perf::progress
