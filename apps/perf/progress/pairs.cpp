// SPDX-License-Identifier: BSD-3-Clause
//
// Pairs: latency, bandwidth and rate of several pairs of ranks at once. The figures: options.cpp.
//
// Ranks 2 i and 2 i + 1 are a pair; the lower one sends first and takes the times. All pairs start at a barrier, and
// the clock is one for all ranks of the host. A batch's bandwidth is thus that of all bytes between the earliest start
// and the latest end. Windows are those of canele-perf, and so are buffers: one for all messages of a side.
#include <algorithm>
#include <cstring>

#include "../line_array.hpp"
#include "../statistics.hpp"
#include "benchmarks.hpp"

namespace canele::perf::progress {
namespace {

constexpr int data_tag = 1, answer_tag = 2, times_tag = 3;
constexpr std::uint64_t most_bytes = 32 << 20;  // of a batch of a pair, unless a window has more

int window_of(const std::string& measure) { return measure == "latency" ? 1 : measure == "bandwidth" ? 16 : 64; }

class Pairs {
 public:
  Pairs(Bench& bench, const std::string& measure, std::uint64_t size)
      : bench_(bench),
        measure_(measure),
        size_(size),
        rank_(bench.link.rank()),
        peer_(rank_ ^ 1),
        window_(window_of(measure)),
        windows_(windows_of_a_batch()),
        out_(size + 1),
        in_(size + 1),
        requests_(static_cast<std::size_t>(window_)) {}

  void run() {
    const bool latency = measure_ == "latency";
    const int pairs = bench_.link.size() / 2;
    std::vector<double> values, slowest;
    batch(-1);  // warm-up: connections, memory
    for (int number = 0; number < bench_.options.batches; ++number) {
      const std::vector<Times> all = batch(number);
      if (rank_ != 0) continue;
      Times whole = all.front();
      double longest = 0, sum = 0;
      for (const Times& one : all) {
        whole = {std::min(whole.begin, one.begin), std::max(whole.end, one.end)};
        longest = std::max(longest, us(one));
        sum += us(one);
      }
      values.push_back(latency ? sum / pairs / messages() / 2 : pairs * per_batch() / us(whole));
      slowest.push_back(longest * pairs / sum);
    }
    if (rank_ != 0) return;
    bench_.report.print({"pairs",
                         {{"measure", measure_}, {"pairs", pairs}, {"size", size_}},
                         {{"median", quantile(values, 0.5)},
                          {"p10", quantile(values, 0.1)},
                          {"p90", quantile(values, 0.9)},
                          {"slowest", quantile(slowest, 0.5)}},
                         {{"values", values}, {"slowest", slowest}}});
  }

 private:
  struct Times {
    std::uint64_t begin, end;
  };

  double us(const Times& times) const { return bench_.clock.us(times.end - times.begin); }
  double messages() const { return static_cast<double>(windows_) * window_; }
  /// Returns what a pair moves in a batch, so that a quotient by us is MB/s, or messages/s.
  double per_batch() const {
    constexpr double us_per_s = 1e6;
    return messages() * (measure_ == "bandwidth" ? static_cast<double>(size_) : us_per_s);
  }
  int windows_of_a_batch() const {
    const std::uint64_t window = static_cast<std::uint64_t>(window_);
    const int usual = measure_ == "rate" ? 20'000 : 2'000;
    const auto asked = static_cast<std::uint64_t>(bench_.options.rounds != 0 ? bench_.options.rounds : usual);
    const std::uint64_t fits = most_bytes / std::max<std::uint64_t>(1, size_ * window);
    return static_cast<int>(std::max<std::uint64_t>(1, std::min(fits, asked / window)));
  }

  /// Runs one batch. Returns the times of all pairs at rank 0, else nothing.
  std::vector<Times> batch(int number) {
    Link& link = bench_.link;
    const bool first = rank_ % 2 == 0;
    const char filled = static_cast<char>(rank_ / 2 * 7 + number + 2);
    std::memset(out_.data(), filled, size_);
    link.barrier();
    Times own{bench_.clock.now(), 0};
    for (int i = 0; i < windows_; ++i) measure_ == "latency" ? ping_pong(first) : stream(first);
    own.end = bench_.clock.now();
    check(filled, !first || measure_ == "latency");
    std::vector<Times> all;
    if (!first) return all;
    if (rank_ != 0) {
      send(link, 0, times_tag, &own, sizeof own);
      return all;
    }
    all.resize(static_cast<std::size_t>(link.size() / 2), own);
    for (std::size_t i = 1; i < all.size(); ++i) {
      receive(link, static_cast<int>(2 * i), times_tag, &all[i], sizeof all[i]);
    }
    return all;
  }
  void ping_pong(bool first) {
    if (first) send(bench_.link, peer_, data_tag, out_.data(), size_);
    receive(bench_.link, peer_, data_tag, in_.data(), size_);
    if (!first) send(bench_.link, peer_, data_tag, out_.data(), size_);
  }
  void stream(bool first) {
    Link& link = bench_.link;
    for (Link::Request& request : requests_) {
      first ? link.isend(peer_, data_tag, out_.data(), size_, request)
            : link.irecv(peer_, data_tag, in_.data(), size_, request);
    }
    for (Link::Request& request : requests_) link.wait(request);
    first ? receive(link, peer_, answer_tag, nullptr, 0) : send(link, peer_, answer_tag, nullptr, 0);
  }
  void check(char filled, bool has_received) {
    if (!has_received || std::all_of(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(size_),
                                     [filled](char c) { return c == filled; })) {
      return;
    }
    bench_.link.abort("pairs: a message of rank " + std::to_string(peer_) + " is wrong");
  }

  Bench& bench_;
  const std::string measure_;
  const std::uint64_t size_;
  const int rank_, peer_, window_, windows_;
  LineArray<char> out_, in_;
  std::vector<Link::Request> requests_;
};

}  // namespace

void pairs(Bench& bench) {
  for (const std::string& measure : bench.options.measures) {
    for (const std::uint64_t size : bench.options.sizes) Pairs(bench, measure, size).run();
  }
}

}  // namespace canele::perf::progress
