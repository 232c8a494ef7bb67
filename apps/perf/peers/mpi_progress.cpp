// SPDX-License-Identifier: BSD-3-Clause
//
// mpi_progress: overlap, threads, overload and availability of any MPI. They are canele-perf's own benchmarks, on MPI's
// calls.
//
// progress.py builds it with each MPI's compiler and ../progress, and starts it on two ranks. Threads: the main thread,
// and those of the benchmark. The options are canele-perf's.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "../progress/benchmarks.hpp"

int main(int argc, char** argv) {
  using namespace canele::perf::progress;
  CLI::App app{"Progress of an MPI, as canele-perf measures it."};
  Options options;
  add_subcommands(app, options);
  app.require_subcommand(1);
  CLI11_PARSE(app, argc, argv);
  const Clock clock;
  const double calm = us_per_turn(clock);  // no library yet
  Link link(&argc, &argv, options.benchmark == "threads");
  try {
    run(link, clock, options, calm);
  } catch (const std::exception& problem) {
    link.abort(problem.what());
  }
  return 0;
}
