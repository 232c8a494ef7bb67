// SPDX-License-Identifier: BSD-3-Clause
//
// Pins, and chooses the benchmark.
//
// The process is pinned: all of its threads and those to come, including those of the library. A rank thus uses one
// core, as the launchers of MPIs bind it, or a block of --cores-each cores.
#include <stdexcept>

#include "../pin.hpp"
#include "benchmarks.hpp"

namespace canele::perf::progress {
namespace {

std::vector<int> cores_of(const Options& options, int local_rank) {
  const std::vector<int> cores = options.cores.empty() ? allowed_cores() : options.cores;
  if (cores.empty()) throw std::runtime_error("cannot find out which cores this process may use");
  std::vector<int> own;
  const auto each = static_cast<std::size_t>(options.cores_each), first = static_cast<std::size_t>(local_rank) * each;
  for (std::size_t i = first; i < first + each; ++i) own.push_back(cores[i % cores.size()]);
  return own;
}

}  // namespace

void run(Link& link, const Clock& clock, const Options& options, double us_per_turn_calm,
         const MessageAllocator& allocate) {
  if (options.bare)
    throw std::runtime_error(
        "--bare starts its ranks itself; expected: canele-perf alltoall --bare, without a launcher");
  const bool clock_of_all = options.benchmark == "clock";  // the only one that may span hosts
  const bool in_pairs = options.benchmark == "pairs";
  const bool three = options.benchmark == "passive";
  const bool many =
      three || options.benchmark == "alltoall" || in_pairs || options.benchmark == "silence" || clock_of_all;
  if (in_pairs && link.size() % 2 != 0)
    throw std::runtime_error(std::to_string(link.size()) + " ranks; expected: pairs, an even number");
  if ((link.local_size() != link.size() && !clock_of_all) || (link.size() != 2 && !many)) {
    throw std::runtime_error(std::to_string(link.size()) + " ranks, " + std::to_string(link.local_size()) +
                             " of them on this host; expected: " + (many ? "all" : "two") + " on one host");
  }
  if (options.pin) pin_thread(cores_of(options, link.local_rank()));
  Report report(options.json);
  Bench bench{link, clock, options, report, allocate, us_per_turn(clock), us_per_turn_calm};
  if (options.benchmark == "overlap") overlap(bench);
  if (options.benchmark == "threads") threads(bench);
  if (options.benchmark == "overload") overload(bench);
  if (options.benchmark == "availability") availability(bench);
  if (options.benchmark == "alltoall") alltoall(bench);
  if (in_pairs) pairs(bench);
  if (options.benchmark == "silence") silence(bench);
  if (three) passive(bench);
  if (clock_of_all) clocks(bench);
}

}  // namespace canele::perf::progress
