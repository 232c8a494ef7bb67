// SPDX-License-Identifier: BSD-3-Clause
//
// mpi_nbc: non-blocking collectives of any MPI while the ranks compute. It is canele-perf nbc, on MPI's calls.
//
// nbc.py builds it with each MPI's compiler, ../nbc and ../progress/report.cpp, and starts it. Threads: the main
// thread, and the compute threads. With --configuration dedicated, MPI_Init runs on the core for progress, which
// threads started by MPI (MPICH_ASYNC_PROGRESS) inherit.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

#include "../nbc/benchmarks.hpp"
#include "../nbc/layout.hpp"
#include "../pin.hpp"

int main(int argc, char** argv) {
  using namespace canele::perf;
  CLI::App app{"Non-blocking collectives of an MPI, as canele-perf nbc measures them."};
  nbc::Options options;
  nbc::add_subcommand(app, options);
  app.require_subcommand(1);
  CLI11_PARSE(app, argc, argv);
  try {
    const std::vector<int> allowed = allowed_cores();
    const int progress_core = nbc::worker_core_of(options, allowed);
    const nbc::Before before(options, progress_core < 0 ? allowed : std::vector<int>{progress_core});
    progress::Link link(&argc, &argv, std::getenv("MPICH_ASYNC_PROGRESS") != nullptr);
    nbc::Collectives collectives;
    try {
      nbc::run(link, collectives, options, before);
    } catch (const std::exception& problem) {
      link.abort(problem.what());
    }
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "mpi_nbc: %s\n", problem.what());
    return 1;
  }
  return 0;
}
