// SPDX-License-Identifier: BSD-3-Clause
//
// The report.
//
// Times of a rank are sums over its compute threads. The library's worker is not included.
#include "report.hpp"

#include <fmt/core.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "residual.hpp"

namespace canele::cholesky {
namespace {

double gflops(const Options& options, double seconds) {
  const double n = options.size;
  return n * n * n / 3 / seconds / 1e9;
}

nlohmann::json to_json(const RankReport& rank) {
  return {{"compute_s", rank.times.compute},     {"communicate_s", rank.times.communicate},
          {"wait_s", rank.times.wait},           {"bytes_sent", rank.bytes_sent},
          {"messages_sent", rank.messages_sent}, {"bytes_forwarded", rank.bytes_forwarded},
          {"wide_sends", rank.wide_sends}};
}

}  // namespace

void print_head(const Options& options, int ranks) {
  if (options.json) return;
  fmt::print("n = {}, tiles of {}, {} ranks as {} x {}, {} compute thread{} each, not pinned\n", options.size,
             options.tile, ranks, options.grid_rows, options.grid_columns, options.threads,
             options.threads == 1 ? "" : "s");
}

void print_run(const Options& options, const std::string& way, int run, const std::vector<RankReport>& ranks,
               double residual) {
  const double seconds = ranks.front().seconds;
  if (options.json) {
    nlohmann::json row = {{"way", way},
                          {"run", run},
                          {"n", options.size},
                          {"nb", options.tile},
                          {"grid", {options.grid_rows, options.grid_columns}},
                          {"seconds", seconds},
                          {"gflops", gflops(options, seconds)},
                          {"ranks", nlohmann::json::array()}};
    if (residual >= 0) row["residual"] = residual;
    for (const RankReport& rank : ranks) row["ranks"].push_back(to_json(rank));
    fmt::print("{}\n", row.dump());
    std::fflush(stdout);
    return;
  }
  fmt::print("{}, run {}: {:.3f} s, {:.2f} GFlop/s", way, run, seconds, gflops(options, seconds));
  if (residual >= 0) fmt::print(", residual {:.2e} (limit {})", residual, residual_limit);
  fmt::print("\n  {:>4} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "rank", "compute s", "handing s", "wait s",
             "sent MB", "messages", "wide", "of others");
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const RankReport& rank = ranks[i];
    fmt::print("  {:>4} {:>10.3f} {:>10.3f} {:>10.3f} {:>10.1f} {:>10} {:>10} {:>10.1f}\n", i, rank.times.compute,
               rank.times.communicate, rank.times.wait, static_cast<double>(rank.bytes_sent) / 1e6, rank.messages_sent,
               rank.wide_sends, static_cast<double>(rank.bytes_forwarded) / 1e6);
  }
  std::fflush(stdout);
}

}  // namespace canele::cholesky
