// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives while the ranks compute. Sizes and work are calibrated, then every point is measured beside its
// references. The figures: options.cpp.
//
// The ratios of a rank use the references of all ranks together, so that they add up to its overhead.
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>

#include "../statistics.hpp"
#include "benchmarks.hpp"
#include "calibrate.hpp"

namespace canele::perf::nbc {
namespace {

double median(const std::vector<double>& values) { return quantile(values, 0.5); }

/// Samples of one point of the plane, an element for each iteration.
struct Samples {
  std::vector<double> comm, comp, total;
  std::vector<double> comm_bare, comp_bare, total_bare;  ///< of plain threads
  std::vector<std::vector<Phases>> together;             ///< by iteration, by rank
};

/// Returns the medians of one rank over the iterations.
Phases phases_of(const Samples& samples, std::size_t rank) {
  std::vector<double> call, comp, wait;
  for (const std::vector<Phases>& ranks : samples.together) {
    call.push_back(ranks[rank].call);
    comp.push_back(ranks[rank].comp);
    wait.push_back(ranks[rank].wait);
  }
  return {median(call), median(comp), median(wait)};
}

class Overlap {
 public:
  Overlap(Bench& bench, Orders& orders) : bench_(bench), orders_(orders) {}

  void run() {
    for (const std::string& name : bench_.options.operations) {
      operation_ = operation_of(name);
      if (operation_ == Operation::barrier) {
        point({0, repeat([this] { return comm(0); }, some)}, 0);
        continue;
      }
      for (const double target : bench_.options.comms) size(target);
    }
  }

 private:
  static constexpr int some = 7;  // repetitions to learn how long something takes

  Order order(std::uint64_t size, std::uint64_t rows) const {
    Order one;
    one.operation = operation_;
    one.size = size;
    one.communicate = 1;
    one.rows = rows;
    return one;
  }
  double comm(std::uint64_t size) { return orders_.give(order(size, 0)).global; }
  double comp(std::uint64_t rows) {
    Order alone = order(0, rows);
    alone.communicate = 0;
    return orders_.give(alone).global;
  }
  /// Measures as later on: a copy is faster if its data is still in a cache from a copy just before.
  double comm_after(std::uint64_t rows, std::uint64_t size) {
    comp(rows);
    return comm(size);
  }
  template <typename Measure>
  static double repeat(Measure&& measure, int times) {
    std::vector<double> found;
    for (int i = 0; i < times; ++i) found.push_back(measure());
    return median(found);
  }
  void size(double target);
  void point(Calibrated size, double target);
  Calibrated rows_for(double target);
  void measure(std::uint64_t size, double comm_target, std::uint64_t rows, double comp_target);
  void measure_bare(std::uint64_t size, std::uint64_t rows, Samples& samples);
  void print(const progress::Row& keys, const Samples& samples);

  Bench& bench_;
  Orders& orders_;
  Operation operation_ = Operation::barrier;
  std::map<double, Calibrated> rows_;  ///< by the wanted time
};

/// Measures all points with this time of the collective.
void Overlap::size(double target) {
  constexpr double bytes_per_us = 2'000;
  constexpr std::uint64_t unit = sizeof(double);
  const std::uint64_t block = Buffers::needed(operation_, unit, bench_.link.size());
  const Range units{1, std::max<std::uint64_t>(1, bench_.options.memory / block)};
  const auto guess = static_cast<std::uint64_t>(target * bytes_per_us) / unit;
  const std::uint64_t rows = rows_for(target).amount;
  Calibrated found = calibrate_and_confirm(target, guess, units, [this, rows](std::uint64_t count) {
    comm(count * unit);  // the first one touches the memory
    return repeat([this, rows, count] { return comm_after(rows, count * unit); }, some);
  });
  found.amount *= unit;
  if (!within_tenth(found.time, target)) {
    std::fprintf(stderr, "canele-perf: %s in %.0f us: the nearest is %.0f us, with %llu bytes%s\n", name_of(operation_),
                 target, found.time, static_cast<unsigned long long>(found.amount),
                 found.time < target ? "; expected: a larger --memory" : "");
  }
  if (found.time < target / 2) return;  // another point of the axis is nearer
  Order checked = order(found.amount, 0);
  checked.check = 1;
  orders_.give(checked);
  point(found, target);
}

/// Measures all computations with this size.
void Overlap::point(Calibrated size, double target) {
  for (const double comp_target : bench_.options.comps) {
    measure(size.amount, target, rows_for(comp_target).amount, comp_target);
  }
  if (!bench_.options.comps.empty()) return;
  for (const double ratio : bench_.options.ratios) {
    const double comp_target = ratio * size.time;
    measure(size.amount, target, rows_for(comp_target).amount, comp_target);
  }
}

Calibrated Overlap::rows_for(double target) {
  const auto known = rows_.find(target);
  if (known != rows_.end()) return known->second;
  const auto guess = static_cast<std::uint64_t>(target / bench_.us_per_row);
  const Calibrated found =
      calibrate_and_confirm(target, std::max<std::uint64_t>(1, guess), {1, std::uint64_t{1} << 40},
                            [this](std::uint64_t rows) { return repeat([&] { return comp(rows); }, some); });
  rows_[target] = found;
  return found;
}

void Overlap::measure(std::uint64_t size, double comm_target, std::uint64_t rows, double comp_target) {
  Samples samples, warm;
  for (int i = -bench_.options.warm_ups; i < bench_.options.iterations; ++i) {
    Samples& into = i < 0 ? warm : samples;
    const double comp_first = comp(rows), comm_alone = comm(size), comp_alone = comp(rows);
    const Outcome both = orders_.give(order(size, rows));
    into.comm.push_back(comm_alone);
    into.comp.insert(into.comp.end(), {comp_first, comp_alone});
    into.total.push_back(both.global);
    into.together.push_back(both.ranks);
    if (bench_.bare != nullptr && size > 0) measure_bare(size, rows, into);
  }
  progress::Row keys{"nbc",
                     {{"configuration", bench_.options.configuration()},
                      {"operation", name_of(operation_)},
                      {"size", size},
                      {"wanted_comm", comm_target},
                      {"wanted_comp", comp_target}},
                     {},
                     {}};
  print(keys, samples);
}

/// Measures plain threads, each time after a computation alone.
void Overlap::measure_bare(std::uint64_t size, std::uint64_t rows, Samples& samples) {
  Order bare = order(size, 0);
  bare.communicate = 0;
  bare.bare = 1;
  samples.comp_bare.push_back(comp(rows));
  samples.comm_bare.push_back(orders_.give(bare).global);
  samples.comp_bare.push_back(comp(rows));
  bare.rows = rows;
  samples.total_bare.push_back(orders_.give(bare).global);
}

void Overlap::print(const progress::Row& keys, const Samples& samples) {
  const References alone{median(samples.comp), median(samples.comm)};
  const double total = median(samples.total), overhead = r_overhead(total, alone);
  std::vector<double> comms, comps, overheads, calls, waits, computing;
  for (std::size_t rank = 0; rank < samples.together.front().size(); ++rank) {
    const Phases own = phases_of(samples, rank);
    comms.push_back(r_comm(own, alone));
    comps.push_back(r_comp_slowdown(own, alone));
    overheads.push_back(r_overhead_by_ratios(comps.back(), comms.back(), alone));
    calls.push_back(own.call / own.total());
    waits.push_back(own.wait / own.total());
    computing.push_back(own.comp / own.total());
  }
  const double comm_ratio = quantile(comms, 1), comp_ratio = quantile(comps, 1);
  nlohmann::ordered_json ratios = {
      {"comm", alone.comm}, {"comp", alone.comp}, {"total", total}, {"r_overhead", overhead}};
  if (!samples.total_bare.empty()) {
    const References bare{median(samples.comp_bare), median(samples.comm_bare)};
    ratios["r_overhead_bare"] = r_overhead(median(samples.total_bare), bare);
    if (bench_.options.json) ratios["comm_bare"] = bare.comm, ratios["total_bare"] = median(samples.total_bare);
  }
  ratios.update({{"r_comm", comm_ratio},
                 {"r_comp_slowdown", comp_ratio},
                 {"r_mpi_impact", bench_.impact},
                 {"omb", omb_overlap(total, alone.comp, alone.comm)},
                 {"imb", imb_overlap(alone.comm, alone.comp, total)}});
  nlohmann::ordered_json ranks = {{"median", median(overheads)},       {"least", quantile(overheads, 0)},
                                  {"largest", quantile(overheads, 1)}, {"call", median(calls)},
                                  {"computation", median(computing)},  {"wait", median(waits)}};
  progress::Row row = keys;
  if (!bench_.options.json) row.keys.erase("wanted_comm"), row.keys.erase("wanted_comp");
  row.figures = bench_.options.all_ranks && !bench_.options.json ? ranks : ratios;
  if (bench_.options.json) row.figures.update(ranks);
  row.figures["diagnosis"] = name_of(diagnose(comp_ratio, comm_ratio, overhead));
  row.samples = {{"comm", samples.comm},
                 {"comp", samples.comp},
                 {"total", samples.total},
                 {"comm_bare", samples.comm_bare},
                 {"comp_bare", samples.comp_bare},
                 {"total_bare", samples.total_bare},
                 {"ranks", {{"r_overhead", overheads}, {"r_comm", comms}, {"r_comp_slowdown", comps}}}};
  bench_.report.print(row);
}

}  // namespace

void overlap(Bench& bench, Orders& orders) { Overlap(bench, orders).run(); }

}  // namespace canele::perf::nbc
