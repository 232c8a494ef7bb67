// SPDX-License-Identifier: BSD-3-Clause
//
// The report of canele-perf match.
//
// "grows" is the median divided by the median at 256 receives in that direction and order. If 256 is not measured, the
// first N is the base.
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "match.hpp"
#include "report.hpp"
#include "statistics.hpp"

namespace canele::perf {
namespace {

double median(const MatchResult& result) { return summarise(result.ns).median; }
double floor_of(const MatchResult& result) { return summarise(result.floor_ns).median; }

const MatchResult& base_of(const MatchResults& results, const MatchResult& result) {
  const MatchResult* base = nullptr;
  for (const MatchResult& one : results.cases) {
    if (one.direction != result.direction || one.order != result.order) continue;
    if (one.receives == 256) return one;
    if (base == nullptr) base = &one;
  }
  return *base;
}

bool has_unexpected(const Options& options) {
  const auto& all = options.match.directions;
  return std::find(all.begin(), all.end(), Direction::unexpected) != all.end();
}

nlohmann::json to_json(const Histogram& histogram) {
  nlohmann::json rows = nlohmann::json::array();
  for (const auto& [least, count] : histogram) rows.push_back({{"least", least}, {"count", count}});
  return rows;
}

nlohmann::json to_json(const MatcherCounts& counts) {
  return {{"attempts", counts.attempts},
          {"lines", counts.lines},
          {"bytes", counts.bytes},
          {"search_length", to_json(counts.search_length)},
          {"depth", to_json(counts.depth)}};
}

void print_json(const Job& job, const Options& options, const MatchResults& results) {
  const MatchOptions& match = options.match;
  nlohmann::json report = {{"canele", canele::version()},
                           {"benchmark", "match"},
                           {"unit", "ns"},
                           {"driver", results.driver},
                           {"matcher", results.matcher},
                           {"load", name_of(match.load)},
                           {"cores", {job.core(0), job.core(1)}},
                           {"worker", job.engine.worker_active()},
                           {"batches", options.batches},
                           {"seed", match.seed},
                           {"any_source_percent", match.any_source},
                           {"any_tag_percent", match.any_tag},
                           {"cold", match.cold},
                           {"unexpected_memory", results.unexpected_memory},
                           {"unexpected_memory_raised", has_unexpected(options)},
                           {"results", nlohmann::json::array()}};
  for (const MatchResult& one : results.cases) {
    const Summary summary = summarise(one.ns);
    nlohmann::json row = {{"direction", name_of(one.direction)},
                          {"order", name_of(one.order)},
                          {"receives", one.receives},
                          {"rounds", one.rounds},
                          {"median", summary.median},
                          {"p10", summary.p10},
                          {"p90", summary.p90},
                          {"samples", one.ns},
                          {"grows", median(one) / median(base_of(results, one))},
                          {"floor",
                           {{"median", floor_of(one)},
                            {"grows", floor_of(one) / floor_of(base_of(results, one))},
                            {"samples", one.floor_ns}}},
                          {"sent", one.sent},
                          {"credit_stalls", one.stalls}};
    if (match.counts) row["counts"] = to_json(one.counts);
    report["results"].push_back(std::move(row));
  }
  fmt::print("{}\n", report.dump(match.load == Load::none ? 2 : -1));  // a load: a line for each matcher
}

void print_head(const Job& job, const Options& options, const MatchResults& results) {
  const MatchOptions& match = options.match;
  fmt::print("canele-perf match, matcher {}, driver {}, {}, worker {}, 8-byte messages, load {}, seed {}{}\n",
             results.matcher, results.driver, place_of(job), job.engine.worker_active() ? "active" : "off",
             name_of(match.load), match.seed, match.cold ? ", cold caches" : "");
  fmt::print("receives from any source: {} %, for any tag: {} % (at least one if not 0; those are posted last)\n",
             match.any_source, match.any_tag);
  fmt::print("memory for unexpected messages: {} bytes{}\n", results.unexpected_memory,
             has_unexpected(options) ? ", raised so that no message stays blocked" : ", as configured");
}

void print_table(const Job& job, const Options& options, const MatchResults& results) {
  print_head(job, options, results);
  fmt::print("{:<11} {:<9} {:>9} {:>10} {:>10} {:>10} {:>7} {:>8} {:>7} {:>8}", "direction", "order", "N", "median",
             "p10", "p90", "grows", "floor", "grows", "stalled");
  fmt::print("{}   [ns per message]\n", options.match.counts ? "  attempts    lines    bytes" : "");
  for (const MatchResult& one : results.cases) {
    const Summary summary = summarise(one.ns);
    const MatchResult& base = base_of(results, one);
    fmt::print("{:<11} {:<9} {:>9} {:>10.1f} {:>10.1f} {:>10.1f} {:>7.2f} {:>8.2f} {:>7.2f} {:>7.1f}%",
               name_of(one.direction), name_of(one.order), one.receives, summary.median, summary.p10, summary.p90,
               summary.median / median(base), floor_of(one), floor_of(one) / floor_of(base),
               100 * static_cast<double>(one.stalls) / static_cast<double>(one.sent));
    if (options.match.counts) {
      fmt::print("{:>10.2f} {:>8.2f} {:>8.1f}", one.counts.attempts, one.counts.lines, one.counts.bytes);
    }
    fmt::print("\n");
  }
  fmt::print(
      "floor: a bare loop that touches the memory that any engine must touch, as the processor overlaps it best\n");
  if (!options.match.counts) return;
  fmt::print(
      "attempts, cache lines to find the partner: per match; bytes of the structure: per entry; counted by the same "
      "operations in one process\n");
}

}  // namespace

void print_match(const Job& job, const Options& options, const MatchResults& results) {
  options.json ? print_json(job, options, results) : print_table(job, options, results);
}

}  // namespace canele::perf
