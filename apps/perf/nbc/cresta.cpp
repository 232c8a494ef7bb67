// SPDX-License-Identifier: BSD-3-Clause
//
// CRESTA's method: how much of a rank that comes late, and of a computation as long as itself, a collective hides.
//
// Iterations of all kinds take turns, while CRESTA measures one kind after the other.
#include <algorithm>
#include <cstdio>

#include "../statistics.hpp"
#include "benchmarks.hpp"
#include "calibrate.hpp"

namespace canele::perf::nbc {
namespace {

class Cresta {
 public:
  Cresta(Bench& bench, Orders& orders) : bench_(bench), orders_(orders) {}

  void run() {
    for (const std::string& name : bench_.options.operations) {
      order_.operation = operation_of(name);
      if (order_.operation == Operation::barrier) {
        measure(0);
        continue;
      }
      for (const std::uint64_t size : bench_.options.sizes) {
        measure(size / sizeof(double) * sizeof(double));
      }
    }
  }

 private:
  double undelayed() { return orders_.give(order_).global; }
  double delayed(double us) {
    Order late = order_;
    late.delay = bench_.clock.ticks(us);
    return orders_.give(late).global;
  }
  double computing(std::uint64_t rows) {
    Order alone = order_;
    alone.communicate = 0;
    alone.rows = rows;
    return orders_.give(alone).global;
  }
  double together(std::uint64_t rows) {
    Order both = order_;
    both.rows = rows;
    return orders_.give(both).global;
  }
  std::uint64_t rows_as_long() {
    constexpr int some = 9;
    std::vector<double> times;
    for (int i = 0; i < some; ++i) times.push_back(undelayed());
    const double target = quantile(times, 0.5);
    const auto guess = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(target / bench_.us_per_row));
    const auto median_of_some = [this](std::uint64_t rows) {
      std::vector<double> found;
      for (int i = 0; i < some; ++i) found.push_back(computing(rows));
      return quantile(found, 0.5);
    };
    return calibrate(target, guess, {1, std::uint64_t{1} << 40}, median_of_some).amount;
  }
  void measure(std::uint64_t size);

  Bench& bench_;
  Orders& orders_;
  Order order_;
};

void Cresta::measure(std::uint64_t size) {
  const Options& options = bench_.options;
  order_.size = size;
  order_.communicate = 1;
  Order checked = order_;
  checked.check = 1;
  orders_.give(checked);
  for (int i = 0; i < options.warm_ups; ++i) undelayed();
  const std::uint64_t rows = rows_as_long();
  std::vector<double> times, comps, both;
  std::vector<std::vector<double>> late(options.delays.size());
  for (int i = 0; i < options.iterations; ++i) {
    times.push_back(undelayed());
    for (std::size_t k = 0; k < late.size(); ++k) late[k].push_back(delayed(options.delays[k]));
    comps.push_back(computing(rows));
    both.push_back(together(rows));
  }
  const double time = quantile(times, 0.5), comp = quantile(comps, 0.5), with = quantile(both, 0.5);
  progress::Row row{
      "nbc-cresta",
      {{"configuration", options.configuration()}, {"operation", name_of(order_.operation)}, {"size", size}},
      {{"time", time}, {"p90", quantile(times, 0.9)}, {"comp", comp}, {"together", with}},
      {{"time", times}, {"comp", comps}, {"together", both}}};
  row.figures["beta"] = overlap_availability(time, comp, with);
  for (std::size_t k = 0; k < late.size(); ++k) {
    char name[32];
    std::snprintf(name, sizeof name, "b_%gus", options.delays[k]);
    row.figures[name] = delay_benefit(time, options.delays[k], quantile(late[k], 0.5));
    row.samples[name] = late[k];
  }
  bench_.report.print(row);
}

}  // namespace

void cresta(Bench& bench, Orders& orders) { Cresta(bench, orders).run(); }

}  // namespace canele::perf::nbc
