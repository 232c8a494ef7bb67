// SPDX-License-Identifier: BSD-3-Clause
//
// Pins, measures the passive impact, and chooses the benchmark.
//
// Every rank measures the impact on the core that it used before the library was started: that of the first rank.
#include <algorithm>
#include <optional>
#include <stdexcept>

#include "benchmarks.hpp"
#include "layout.hpp"

namespace canele::perf::nbc {
namespace {

constexpr int impact_tag = 13;

/// Returns the largest impact of all ranks on rank 0, and the rank's own on the other ranks.
double largest_impact(progress::Link& link, Collectives& collectives, const Before& before) {
  double impact = before.impact([&] {
    progress::Link::Request request{};
    collectives.start({Operation::barrier, 0, nullptr, nullptr}, request);
    link.wait(request);
  });
  if (link.rank() != 0) {
    progress::send(link, 0, impact_tag, &impact, sizeof impact);
    return impact;
  }
  for (int rank = 1; rank < link.size(); ++rank) {
    double theirs = 0;
    progress::receive(link, rank, impact_tag, &theirs, sizeof theirs);
    impact = std::max(impact, theirs);
  }
  return impact;
}

/// Returns the core for progress if no rank computes there; -1: none.
int core_for_bare(const Options& options, const std::vector<int>& allowed) {
  const auto has = [](const std::vector<int>& cores, int one) {
    return std::count(cores.begin(), cores.end(), one) > 0;
  };
  const int core = worker_core_of(options, allowed);
  const bool free = has(allowed, core) && !has(computing_cores(options, allowed), core);
  return options.bare && options.pin && !options.cresta && free ? core : -1;
}

}  // namespace

void run(progress::Link& link, Collectives& collectives, const Options& options, const Before& before) {
  if (link.local_size() != link.size() || link.size() < 2) {
    throw std::runtime_error(std::to_string(link.size()) + " ranks, " + std::to_string(link.local_size()) +
                             " of them on this host; expected: at least two on one host, as their clocks are compared");
  }
  const double impact = largest_impact(link, collectives, before);
  Work work(cores_of(options, before.allowed, link.local_rank()), options.pin);
  std::optional<Bare> bare;
  const int bare_core = core_for_bare(options, before.allowed);
  if (bare_core >= 0) bare.emplace(bare_core);
  progress::Report report(options.json);
  const bool shared = oversubscribed(options, before.allowed, link.size());
  Bench bench{link,   collectives, before.clock, options, report, work, bare ? &*bare : nullptr, before.us_per_row,
              impact, shared};
  Orders orders(bench);
  if (link.rank() != 0) return orders.follow();
  (options.cresta ? cresta : overlap)(bench, orders);
  orders.end();
}

}  // namespace canele::perf::nbc
