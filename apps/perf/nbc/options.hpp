// SPDX-License-Identifier: BSD-3-Clause
//
// Options of nbc, common to canele-perf and the peers' programs. main() parses them once; one thread.
//
// The cores to compute on are separate from the core for progress. If they are equal in all configurations, only
// progress differs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace canele::perf::nbc {

struct Options {
  std::vector<std::string> configurations;  ///< a job each
  std::vector<std::string> operations;
  std::vector<double> comms;   ///< us wanted for the collective alone.
  std::vector<double> comps;   ///< us wanted for the computation alone; empty: by ratios.
  std::vector<double> ratios;  ///< computation divided by collective.
  std::vector<int> cores;      ///< OS indexes of those that compute; empty: all, but not the worker's if dedicated.
  int worker_core = -1;        ///< of progress threads; -1: the last one, if dedicated.
  int threads = 0;             ///< compute threads of each rank; 0: cores / ranks
  int ranks = 2;
  int iterations = 0;  ///< 0: chosen
  int warm_ups = -1;   ///< -1: chosen
  std::uint64_t memory = 0;
  std::vector<std::uint64_t> sizes;  ///< cresta
  std::vector<double> delays;        ///< cresta, us
  bool sweep = false;
  bool cresta = false;
  bool all_ranks = false;
  bool pin = true;
  bool bare = true;
  bool json = false;

  /// Returns the configuration of this job, which has only one.
  const std::string& configuration() const { return configurations.front(); }
  bool dedicated() const { return configuration() == "dedicated"; }
};

void add_subcommand(CLI::App& app, Options& options);

}  // namespace canele::perf::nbc
