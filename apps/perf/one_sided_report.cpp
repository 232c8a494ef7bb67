// SPDX-License-Identifier: BSD-3-Clause
//
// The report of put, get and atomics: a row for each memory, operation, size and measure.
//
// The ratio is ours divided by the floor: for latency lower is better, for rate higher.
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "one_sided.hpp"
#include "report.hpp"

namespace canele::perf {
namespace {

const char* floor_words(const Options& options) {
  return options.floor ? "plain copies and atomic instructions on mapped memory" : "not requested";
}

void print_json(const Job& job, const Options& options, const OneSidedResults& results) {
  nlohmann::json report = {{"canele", canele::version()},
                           {"benchmark", name_of(options.benchmark)},
                           {"driver", results.driver},
                           {"floor", floor_words(options)},
                           {"cores", {job.core(0), job.core(1)}},
                           {"worker", job.engine.worker_active()},
                           {"batches", options.batches},
                           {"results", nlohmann::json::array()}};
  for (const OneSidedResult& one : results.rows) {
    nlohmann::json row = samples_json(one.ours);
    row["memory"] = name_of(one.what.memory);
    row["mapped"] = one.mapped;
    row["operation"] = name_of(one.what.operation);
    row["measure"] = name_of(one.what.measure);
    row["unit"] = unit_of(one.what.measure, "operations/s");
    row["size"] = one.what.size;
    row["window"] = one.what.window;
    row["operations_per_batch"] = one.what.rounds * one.what.window;
    add_floor(row, one.ours, one.floor);
    report["results"].push_back(std::move(row));
  }
  fmt::print("{}\n", report.dump(2));
}

void print_row(const OneSidedResult& one) {
  fmt::print("{:<10} {:<16} {:>8} {:<8} {:>6} {}   {}\n", name_of(one.what.memory), name_of(one.what.operation),
             one.what.size, name_of(one.what.measure), one.what.window,
             figures(one.ours, one.floor, digits_of(one.what.measure)), unit_of(one.what.measure, "operations/s"));
}

void print_table(const Job& job, const Options& options, const OneSidedResults& results) {
  fmt::print("canele-perf {}, driver {}, {}, worker {}\n", name_of(options.benchmark), results.driver, place_of(job),
             job.engine.worker_active() ? "active" : "off");
  fmt::print("floor: {}\n", floor_words(options));
  if (std::any_of(results.rows.begin(), results.rows.end(),
                  [](const OneSidedResult& one) { return one.what.memory == TargetMemory::mapped && !one.mapped; })) {
    fmt::print("rank 0 cannot map the memory of rank 1: the rows of mapped memory are those of packets\n");
  }
  fmt::print("{:<10} {:<16} {:>8} {:<8} {:>6} {:>12} {:>12} {:>12}   {:>12} {:>7}\n", "memory", "operation", "bytes",
             "measure", "window", "median", "p10", "p90", "floor", "ratio");
  for (const OneSidedResult& one : results.rows) print_row(one);
}

}  // namespace

void print_one_sided(const Job& job, const Options& options, const OneSidedResults& results) {
  options.json ? print_json(job, options, results) : print_table(job, options, results);
}

}  // namespace canele::perf
