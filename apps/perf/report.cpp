// SPDX-License-Identifier: BSD-3-Clause
//
// The report of canele-perf.
//
// JSON holds every sample, so that a script can pool several runs.
#include "report.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "statistics.hpp"

namespace canele::perf {
namespace {

double ratio(const std::vector<double>& ours, const std::vector<double>& floor) {
  return summarise(ours).median / summarise(floor).median;
}

void print_json(const Job& job, const Options& options, const Results& results) {
  nlohmann::json report = {{"canele", canele::version()},
                           {"benchmark", name_of(options.benchmark)},
                           {"unit", unit_of(options.benchmark)},
                           {"driver", results.driver},
                           {"floor", results.floor_name},
                           {"cores", {job.core(0), job.core(1)}},
                           {"worker", job.engine.worker_active()},
                           {"batches", options.batches},
                           {"memory", {name_of(options.memory_of(0)), name_of(options.memory_of(1))}},
                           {"results", nlohmann::json::array()}};
  for (const Result& result : results.sizes) {
    nlohmann::json row = samples_json(result.ours);
    row["size"] = result.size;
    row["messages_per_batch"] = result.messages_per_batch;
    add_floor(row, result.ours, result.floor);
    report["results"].push_back(std::move(row));
  }
  fmt::print("{}\n", report.dump(2));
}

void print_table(const Job& job, const Options& options, const Results& results) {
  const int digits = options.benchmark == Benchmark::latency ? 3 : 0;
  fmt::print("canele-perf {}, driver {}, {}, worker {}\n", name_of(options.benchmark), results.driver, place_of(job),
             job.engine.worker_active() ? "active" : "off");
  if (options.uses_gpu())
    fmt::print("memory: {} at rank 0, {} at rank 1\n", name_of(options.memory_of(0)), name_of(options.memory_of(1)));
  fmt::print("floor: {}\n", results.floor_name);
  fmt::print("{:>10} {:>12} {:>12} {:>12}   {:>12} {:>7}   [{}]\n", "bytes", "median", "p10", "p90", "floor", "ratio",
             unit_of(options.benchmark));
  for (const Result& result : results.sizes) {
    fmt::print("{:>10} {}\n", result.size, figures(result.ours, result.floor, digits));
  }
}

}  // namespace

nlohmann::json samples_json(const std::vector<double>& samples) {
  const Summary summary = summarise(samples);
  return {{"median", summary.median}, {"p10", summary.p10}, {"p90", summary.p90}, {"samples", samples}};
}

void add_floor(nlohmann::json& row, const std::vector<double>& ours, const std::vector<double>& floor) {
  if (floor.empty()) return;
  row["floor"] = samples_json(floor);
  row["ratio"] = ratio(ours, floor);
}

std::string figures(const std::vector<double>& ours, const std::vector<double>& floor, int digits) {
  const Summary summary = summarise(ours);
  const std::string text =
      fmt::format("{:>12.{}f} {:>12.{}f} {:>12.{}f}", summary.median, digits, summary.p10, digits, summary.p90, digits);
  if (floor.empty()) return fmt::format("{}   {:>12} {:>7}", text, "-", "-");
  return fmt::format("{}   {:>12.{}f} {:>7.2f}", text, summarise(floor).median, digits, ratio(ours, floor));
}

std::string place_of(const Job& job) {
  if (job.core(0) < 0) return "not pinned";
  const std::string text = fmt::format("rank 0 on core {}, rank 1 on core {}", job.core(0), job.core(1));
  return job.oversubscribed() ? text + " (the same: these figures say little)" : text;
}

void print_report(const Job& job, const Options& options, const Results& results) {
  if (options.json) {
    print_json(job, options, results);
  } else {
    print_table(job, options, results);
  }
}

}  // namespace canele::perf
