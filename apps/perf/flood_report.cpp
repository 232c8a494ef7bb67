// SPDX-License-Identifier: BSD-3-Clause
//
// The report of a flood.
//
// With --both every rank is a receiver, and the one that took most memory decides.
#include "flood_report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "flood.hpp"

namespace canele::perf {
namespace {

double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }
double seconds(std::uint64_t ns) { return static_cast<double>(ns) / 1e9; }

std::uint64_t most_grown(const std::vector<FloodOutcome>& all) {
  std::uint64_t most = 0;
  for (const FloodOutcome& one : all) most = std::max(most, one.receives != 0 ? one.grown() : 0);
  return most;
}

/// Returns the highest value of a counter among all, the receiver, or the senders.
std::uint64_t highest(const std::vector<FloodOutcome>& all, const char* name) {
  const auto index = static_cast<std::size_t>(
      std::find(flood_counters.begin(), flood_counters.end(), std::string_view(name)) - flood_counters.begin());
  std::uint64_t most = 0;
  for (const FloodOutcome& one : all) most = std::max(most, one.counters.at(index));
  return most;
}

void print_json(const Options& options, std::uint64_t messages, const std::vector<FloodOutcome>& all) {
  nlohmann::json report = {{"benchmark", "flood"},         {"driver", options.drivers.front()},
                           {"senders", all.size() - 1},    {"size", options.sizes.front()},
                           {"messages", messages},         {"both", options.flood.both},
                           {"limit", options.flood.limit}, {"within", most_grown(all) <= allowed(options.flood)},
                           {"grown", most_grown(all)},     {"ranks", nlohmann::json::array()}};
  for (const FloodOutcome& one : all) {
    nlohmann::json row = {{"before", one.before},
                          {"at_rest", one.at_rest},
                          {"most", one.most},
                          {"after", one.after},
                          {"stored_at_rest", one.stored},
                          {"sending_s", seconds(one.sending_ns)},
                          {"grown", one.grown()},
                          {"receiving_s", seconds(one.receiving_ns)}};
    for (std::size_t i = 0; i < flood_counters.size(); ++i) row[flood_counters[i]] = one.counters[i];
    report["ranks"].push_back(std::move(row));
  }
  fmt::print("{}\n", report.dump());
}

void print_text(const Options& options, std::uint64_t messages, const std::vector<FloodOutcome>& all) {
  const FloodOutcome& receiver = all.front();
  fmt::print("canele-perf flood, driver {}, {} sender{}, {} messages of {} bytes each{}, limit {:.1f} MiB\n",
             options.drivers.front(), all.size() - 1, all.size() == 2 ? "" : "s", messages, options.sizes.front(),
             options.flood.both ? ", and as many back" : "", mib(options.flood.limit));
  fmt::print("  resident, MiB: before {:.1f}, all sent {:.1f}, most {:.1f}, after {:.1f}; grown by at most {:.1f}{}\n",
             mib(receiver.before), mib(receiver.at_rest), mib(receiver.most), mib(receiver.after),
             mib(receiver.grown()),
             options.flood.both ? fmt::format(" (of all ranks: {:.1f})", mib(most_grown(all))) : "");
  fmt::print("  stored when all was sent: {}; unexpected_most {}, unexpected_bytes_most {}\n", receiver.stored,
             highest({receiver}, "unexpected_most"), highest({receiver}, "unexpected_bytes_most"));
  const std::vector<FloodOutcome> senders(all.begin() + 1, all.end());
  fmt::print("  senders, the highest: credit_stalls {}, credit_blocked_most {}, stalled for {:.2f} s\n",
             highest(senders, "credit_stalls"), highest(senders, "credit_blocked_most"),
             seconds(highest(senders, "credit_stalled_ns")));
  fmt::print("  all sent and at rest after {:.2f} s, all received, in order, after another {:.2f} s\n",
             seconds(receiver.sending_ns), seconds(receiver.receiving_ns));
}

}  // namespace

bool print_flood(const Options& options, std::uint64_t messages, const std::vector<FloodOutcome>& all) {
  options.json ? print_json(options, messages, all) : print_text(options, messages, all);
  const bool good = most_grown(all) <= allowed(options.flood);
  if (!good) {
    fmt::print(stderr, "canele-perf: resident memory of a receiver grew by {:.1f} MiB; {:.1f} are allowed\n",
               mib(most_grown(all)), mib(allowed(options.flood)));
  }
  std::fflush(stdout);
  return good;
}

}  // namespace canele::perf
