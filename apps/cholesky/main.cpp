// SPDX-License-Identifier: BSD-3-Clause
//
// canele-cholesky: a tile Cholesky on a small dependency-driven scheduler, over the native API and nothing else.
//
// It shows how a task runtime uses Canelé, and it is the load for comparisons of multicasts. Run by users and by
// tests/process/cholesky. Threads: compute threads, and the library's worker, which makes progress.
//
// Read it from factorise() down: graph (which task may run), scheduler (which thread runs it), exchange (messages).
#include <canele/canele.hpp>
#include <cstdio>
#include <exception>
#include <stdexcept>

#include "factorisation.hpp"
#include "options.hpp"
#include "report.hpp"
#include "residual.hpp"

namespace {

using namespace canele::cholesky;

constexpr std::uint64_t report_tag = std::uint64_t{1} << 41;

/// Returns the reports of all ranks on rank 0; elsewhere an empty list.
std::vector<RankReport> gather(canele::engine& engine, canele::session& session, RankReport& own) {
  if (engine.rank() != 0) {
    session.send(0, report_tag, canele::one(own));
    return {};
  }
  std::vector<RankReport> all(static_cast<std::size_t>(engine.size()));
  all.front() = own;
  for (int rank = 1; rank < engine.size(); ++rank) {
    session.recv(rank, report_tag, canele::one(all[static_cast<std::size_t>(rank)]));
  }
  return all;
}

/// Runs one way once. Returns false if the result is wrong.
bool run_once(canele::engine& engine, canele::session& session, Tiles& tiles, const Options& options,
              const std::string& way, int run) {
  tiles.fill(options.seed);
  RankReport own = factorise(engine, session, tiles, {way_of(way), options.threads, options.look_ahead});
  const double error = options.check ? residual(session, tiles, options.seed) : -1;
  const std::vector<RankReport> all = gather(engine, session, own);
  if (engine.rank() == 0) print_run(options, way, run, all, error);
  return error <= residual_limit;
}

int work(canele::engine& engine, Options options) {
  choose_grid(options, engine.size());
  if (!engine.worker_active()) engine.bind_worker({});
  use_one_thread_each();
  canele::session session(engine, "canele-cholesky");
  const Layout layout(options.size, options.tile, options.grid_rows, options.grid_columns);
  Tiles tiles(layout, engine.rank());
  if (engine.rank() == 0) print_head(options, engine.size());
  bool right = true;
  for (int run = 1; run <= options.runs; ++run) {
    for (const std::string& way : options.ways) right &= run_once(engine, session, tiles, options, way, run);
  }
  if (!right && engine.rank() == 0) {
    std::fprintf(stderr, "canele-cholesky: the factor is wrong: a residual is over %g\n", residual_limit);
  }
  return right ? 0 : 1;
}

/// Ends the job if this rank cannot go on, because the other ranks would wait for it.
int work_or_abort(canele::engine& engine, const Options& options) {
  try {
    return work(engine, options);
  } catch (const std::exception& problem) {
    engine.abort(1, problem.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  int code = 0;
  if (!parse_options(argc, argv, &options, &code)) return code;
  try {
    canele::engine engine;
    code = work_or_abort(engine, options);
    engine.finalize();
    return code;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "canele-cholesky: %s\n", problem.what());
    return 1;
  }
}
