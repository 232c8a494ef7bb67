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

double ratio(const Result& result) { return summarise(result.ours).median / summarise(result.floor).median; }

void print_json(const Job& job, const Options& options, const Results& results) {
  nlohmann::json report = {{"canele", canele::version()},          {"benchmark", name_of(options.benchmark)},
                           {"unit", unit_of(options.benchmark)},   {"driver", results.driver},
                           {"floor", results.floor_name},          {"cores", {job.core(0), job.core(1)}},
                           {"worker", job.engine.worker_active()}, {"batches", options.batches},
                           {"results", nlohmann::json::array()}};
  for (const Result& result : results.sizes) {
    nlohmann::json row = samples_json(result.ours);
    row["size"] = result.size;
    row["messages_per_batch"] = result.messages_per_batch;
    if (!result.floor.empty()) {
      row["floor"] = samples_json(result.floor);
      row["ratio"] = ratio(result);
    }
    report["results"].push_back(std::move(row));
  }
  fmt::print("{}\n", report.dump(2));
}

void print_table(const Job& job, const Options& options, const Results& results) {
  const int digits = options.benchmark == Benchmark::latency ? 3 : 0;
  fmt::print("canele-perf {}, driver {}, {}, worker {}\n", name_of(options.benchmark), results.driver, place_of(job),
             job.engine.worker_active() ? "active" : "off");
  fmt::print("floor: {}\n", results.floor_name);
  fmt::print("{:>10} {:>12} {:>12} {:>12}   {:>12} {:>7}   [{}]\n", "bytes", "median", "p10", "p90", "floor", "ratio",
             unit_of(options.benchmark));
  for (const Result& result : results.sizes) {
    const Summary ours = summarise(result.ours);
    fmt::print("{:>10} {:>12.{}f} {:>12.{}f} {:>12.{}f}", result.size, ours.median, digits, ours.p10, digits, ours.p90,
               digits);
    if (result.floor.empty()) {
      fmt::print("   {:>12} {:>7}\n", "-", "-");
    } else {
      fmt::print("   {:>12.{}f} {:>7.2f}\n", summarise(result.floor).median, digits, ratio(result));
    }
  }
}

}  // namespace

nlohmann::json samples_json(const std::vector<double>& samples) {
  const Summary summary = summarise(samples);
  return {{"median", summary.median}, {"p10", summary.p10}, {"p90", summary.p90}, {"samples", samples}};
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
