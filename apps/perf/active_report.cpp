// SPDX-License-Identifier: BSD-3-Clause
//
// The report of am: a row for each kind, size and measure.
//
// The ratio is ours divided by the floor: for latency lower is better, for rate higher.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "active.hpp"
#include "report.hpp"

namespace canele::perf {
namespace {

const char* active_floor(const Options& options) {
  return options.floor ? "the same exchange by canele_isend and canele_irecv" : "not requested";
}

const char* waits_by(const Options& options) {
  return options.active.poll ? "canele_progress" : "canele_condition_wait";
}

void print_json(const Job& job, const Options& options, const ActiveResults& results) {
  nlohmann::json report = {{"canele", canele::version()},
                           {"benchmark", name_of(options.benchmark)},
                           {"driver", results.driver},
                           {"floor", active_floor(options)},
                           {"cores", {job.core(0), job.core(1)}},
                           {"worker", job.engine.worker_active()},
                           {"batches", options.batches},
                           {"waits", waits_by(options)},
                           {"most_injected", results.most_injected},
                           {"too_long_to_inject", results.too_long},
                           {"results", nlohmann::json::array()}};
  for (const ActiveResult& one : results.rows) {
    nlohmann::json row = samples_json(one.ours);
    row["kind"] = name_of(one.what.kind);
    row["measure"] = name_of(one.what.measure);
    row["unit"] = unit_of(one.what.measure, "messages/s");
    row["size"] = one.what.size;
    row["window"] = one.what.window;
    row["messages_per_batch"] = one.what.messages();
    add_floor(row, one.ours, one.floor);
    report["results"].push_back(std::move(row));
  }
  fmt::print("{}\n", report.dump(2));
}

void print_row(const ActiveResult& one) {
  fmt::print("{:<10} {:>8} {:<8} {:>6} {}   {}\n", name_of(one.what.kind), one.what.size, name_of(one.what.measure),
             one.what.window, figures(one.ours, one.floor, digits_of(one.what.measure)),
             unit_of(one.what.measure, "messages/s"));
}

void print_table(const Job& job, const Options& options, const ActiveResults& results) {
  fmt::print("canele-perf {}, driver {}, {}, worker {}\n", name_of(options.benchmark), results.driver, place_of(job),
             job.engine.worker_active() ? "active" : "off");
  fmt::print("floor: {}\n", active_floor(options));
  fmt::print("main threads wait by {}; for a queue by canele_queue_take, rank 0 for calls by canele_wait\n",
             waits_by(options));
  if (!results.too_long.empty()) {
    fmt::print("inject: payloads of {} bytes are left out; at most {} bytes are injected beside the header\n",
               fmt::join(results.too_long, ", "), results.most_injected);
  }
  fmt::print("{:<10} {:>8} {:<8} {:>6} {:>12} {:>12} {:>12}   {:>12} {:>7}\n", "kind", "bytes", "measure", "window",
             "median", "p10", "p90", "floor", "ratio");
  for (const ActiveResult& one : results.rows) print_row(one);
}

}  // namespace

void print_active(const Job& job, const Options& options, const ActiveResults& results) {
  options.json ? print_json(job, options, results) : print_table(job, options, results);
}

}  // namespace canele::perf
