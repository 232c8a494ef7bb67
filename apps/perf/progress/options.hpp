// SPDX-License-Identifier: BSD-3-Clause
//
// Options of the benchmarks of progress: the same for canele-perf and for the peers' programs.
//
// Who: main parses once; everybody reads. Threads: one. Surprise: see ../options.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace canele::perf::progress {

struct Options {
  std::string benchmark;  ///< overlap, threads, overload, availability, alltoall, silence, clock; "": none of these
  std::vector<std::uint64_t> sizes;
  std::vector<std::string> sides;     ///< overlap: who computes; availability: who is looked at
  std::vector<std::string> patterns;  ///< threads
  std::vector<double> ratios;         ///< overlap: computation to transfer
  std::vector<int> threads;           ///< threads: N; overload: those that compute, in each process
  std::vector<int> cores;             ///< OS indexes, one for each rank of the host; empty: the first ones allowed
  int batches = 0;
  int rounds = 0;      ///< ping-pongs of a batch; 0: chosen
  int ranks = 0;       ///< to be started; 0: chosen, at least 2
  double seconds = 0;  ///< threads, N-to-N: length of a batch; silence: of one; 0: chosen
                       ///< clock: between the first two synchronisations
  int trips = 1000;    ///< clock: of each rank, each time
  double margin_us = 200, offset_s = 0, drift_ppm = 0;  ///< clock
  std::uint64_t seed = 1;                               ///< clock: of what is wrong with whose clock
  bool bare = false;                                    ///< alltoall: without a library
  bool pin = true;
  bool json = false;
};

/// Adds the subcommands; the one that is given fills in the rest of what it needs.
void add_subcommands(CLI::App& app, Options& options);

}  // namespace canele::perf::progress
