// SPDX-License-Identifier: BSD-3-Clause
//
// Overlap: what a transfer costs a rank that computes meanwhile. The figures: options.cpp.
//
// Every batch measures the references anew, between the times that are compared with them.
#include <algorithm>
#include <array>

#include "../statistics.hpp"
#include "order.hpp"

namespace canele::perf::progress {
namespace {

constexpr int sender = 0;  // rank 0 sends; the side that computes varies

struct Samples {
  std::vector<double> comm, one, comp, total, wait, during, cpu_send, cpu_recv;
};

class Overlap {
 public:
  explicit Overlap(Bench& bench) : bench_(bench), orders_(bench) {}

  void run() {
    if (bench_.link.rank() != 0) return orders_.follow();
    for (const std::uint64_t size : bench_.options.sizes) {
      for (const std::string& side : bench_.options.sides) {
        for (const double ratio : bench_.options.ratios) measure(size, side, ratio);
      }
    }
    orders_.end();
  }

 private:
  double us(std::uint64_t ticks) const { return bench_.clock.us(ticks); }
  std::uint64_t turns(double us) const { return static_cast<std::uint64_t>(us / bench_.us_per_turn); }
  Order order(std::uint64_t size, std::array<std::uint64_t, 2> turns) const {
    return {0, size, sender, size, {turns[0], turns[1]}};
  }
  double comm(std::uint64_t size, Samples* samples = nullptr);
  double one(std::uint64_t size, int computing, double comm_us);
  void measure(std::uint64_t size, const std::string& side, double ratio);
  void batch(std::uint64_t size, std::array<std::uint64_t, 2> work, int computing, double comm_us, Samples& samples);
  void print(std::uint64_t size, const std::string& side, double ratio, const Samples& samples);

  Bench& bench_;
  Orders orders_;
};

/// Measures the transfer while both ranks wait.
double Overlap::comm(std::uint64_t size, Samples* samples) {
  const Outcome outcome = orders_.give(order(size, {0, 0}));
  if (samples != nullptr) {
    samples->cpu_send.push_back(outcome.of[sender].cpu_us);
    samples->cpu_recv.push_back(outcome.of[1 - sender].cpu_us);
  }
  return us(outcome.ticks());
}

/// Lets one rank compute for far longer. Returns how long the other one takes until its own request is complete.
double Overlap::one(std::uint64_t size, int computing, double comm_us) {
  constexpr double far_longer = 5;
  std::array<std::uint64_t, 2> work{};
  work[static_cast<std::size_t>(computing)] = turns(far_longer * comm_us);
  const Outcome outcome = orders_.give(order(size, work));
  const Dates& other = outcome.of[1 - computing];
  return us(other.end - other.start);
}

void Overlap::batch(std::uint64_t size, std::array<std::uint64_t, 2> work, int computing, double comm_us,
                    Samples& samples) {
  samples.comm.push_back(comm(size, &samples));
  samples.one.push_back(one(size, computing, comm_us));
  Order alone = order(size, work);
  alone.transfers = 0;
  samples.comp.push_back(us(orders_.give(alone).ticks()));
  const Outcome outcome = orders_.give(order(size, work));
  const Dates& own = outcome.of[computing];
  samples.total.push_back(us(outcome.ticks()));
  samples.wait.push_back(us(own.end - own.computed));
  samples.during.push_back(us(own.computed - own.posted));
}

void Overlap::measure(std::uint64_t size, const std::string& side, double ratio) {
  constexpr int tries = 9;  // to learn how much is as long as the transfer; the first ones open connections
  const int computing = side == "receiver" ? 1 - sender : sender;
  std::vector<double> comms, ones;
  for (int i = 0; i < tries; ++i) comms.push_back(comm(size));
  const double comm_us = quantile(comms, 0.5);
  for (int i = 0; i < tries; ++i) ones.push_back(one(size, computing, comm_us));
  // Without any progress the other side takes until the computation is over. The target is then as long as the
  // transfer.
  const double target = side == "both" ? comm_us : std::min(quantile(ones, 0.5), 2 * comm_us);
  std::array<std::uint64_t, 2> work{};
  if (side != "receiver") work[sender] = turns(ratio * target);
  if (side != "sender") work[1 - sender] = turns(ratio * target);
  Samples samples;
  for (int i = 0; i < bench_.options.batches; ++i) batch(size, work, computing, comm_us, samples);
  print(size, side, ratio, samples);
}

void Overlap::print(std::uint64_t size, const std::string& side, double ratio, const Samples& samples) {
  const auto median = [](const std::vector<double>& values) { return quantile(values, 0.5); };
  const double comm = median(samples.comm), one = median(samples.one), comp = median(samples.comp);
  const double total = median(samples.total), reference = side == "both" ? comm : one;
  Row row{"overlap", {{"size", size}, {"side", side}, {"ratio", ratio}}, {}, {}};
  row.figures = {{"comm", comm},
                 {"one", one},
                 {"comp", comp},
                 {"total", total},
                 {"p90", quantile(samples.total, 0.9)},
                 {"bound", total / std::max(comp, reference)},
                 {"serial", total / (comp + comm)},
                 {"r_overhead", (total - std::max(comp, comm)) / std::max(0.001, std::min(comp, comm))},
                 {"r_comm", median(samples.wait) / comm},
                 {"r_comp_slowdown", median(samples.during) / comp},
                 {"r_passive_impact", bench_.us_per_turn / bench_.us_per_turn_calm},
                 {"cpu_send", median(samples.cpu_send)},
                 {"cpu_recv", median(samples.cpu_recv)}};
  row.samples = {{"comm", samples.comm},         {"one", samples.one},          {"comp", samples.comp},
                 {"total", samples.total},       {"wait", samples.wait},        {"during", samples.during},
                 {"cpu_send", samples.cpu_send}, {"cpu_recv", samples.cpu_recv}};
  bench_.report.print(row);
}

}  // namespace

void overlap(Bench& bench) { Overlap(bench).run(); }

}  // namespace canele::perf::progress
