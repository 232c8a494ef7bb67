// SPDX-License-Identifier: BSD-3-Clause
//
// Options of the benchmarks of progress, common to canele-perf and the peers' programs. main() parses them once; one
// thread.
//
// Like those of ../options.hpp, they must not depend on the rank or the clock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace canele::perf::progress {

struct Options {
  std::string
      benchmark;  ///< overlap, threads, overload, availability, alltoall, pairs, silence, passive, clock; "": none
  std::vector<std::uint64_t> sizes;
  std::vector<std::string> sides;     ///< overlap: the side that computes; availability: the side that is measured.
  std::vector<std::string> patterns;  ///< threads.
  std::vector<std::string> measures;  ///< pairs.
  std::string operation;              ///< passive: put, get, accumulate.
  std::vector<double> ratios;         ///< overlap: computation divided by transfer.
  std::vector<int> threads;           ///< threads: N; overload: compute threads in each process.
  std::vector<int> cores;             ///< OS indexes, one for each rank of the host; empty: the first ones allowed.
  int cores_each = 1;                 ///< cores of each rank, in the order of `cores`.
  int batches = 0;
  int rounds = 0;      ///< ping-pongs of a batch; pairs: messages of a pair; 0: chosen.
  int ranks = 0;       ///< ranks to start; 0: chosen, at least 2.
  bool queue = false;  ///< silence: ranks wait in canele_queue_wait
  double seconds = 0;  ///< threads, N-to-N: length of a batch; silence: of one; passive: of a computation; clock:
                       ///< between the first two synchronisations; 0: chosen.
  int trips = 1000;    ///< clock: of each rank, each time.
  double margin_us = 200, offset_s = 0, drift_ppm = 0;  ///< clock
  std::uint64_t seed = 1;                               ///< clock: of the errors that are added to the clocks
  bool bare = false;                                    ///< alltoall: without a library
  bool pin = true;
  bool json = false;
};

/// Adds the subcommands. The one that is given sets the defaults of its other options.
void add_subcommands(CLI::App& app, Options& options);

}  // namespace canele::perf::progress
