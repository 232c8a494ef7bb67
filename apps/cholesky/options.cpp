// SPDX-License-Identifier: BSD-3-Clause
//
// Options: the command line.
//
// Settings of the engine are not options here: variables such as CANELE_DRIVERS set them for every program.
#include "options.hpp"

#include <canele/canele.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <stdexcept>

#include "layout.hpp"
#include "way.hpp"

namespace canele::cholesky {
namespace {

constexpr int most_rows = 1'000'000, most_tile = 20'000, most_threads = 1000, most_runs = 10'000;

/// Parses "4x2" as rows and columns of ranks. Returns what is wrong with the text, or an empty string.
std::string parse_grid(const std::string& text, Options& options) {
  int end = 0;
  if (std::sscanf(text.c_str(), "%dx%d%n", &options.grid_rows, &options.grid_columns, &end) == 2 &&
      static_cast<std::size_t>(end) == text.size() && options.grid_rows > 0 && options.grid_columns > 0) {
    return {};
  }
  return "'" + text + "' is not a grid; expected: rows x columns of ranks, e.g. 4x2";
}

}  // namespace

bool parse_options(int argc, char** argv, Options* options, int* code) {
  CLI::App app{
      "Factorises a matrix by a tile Cholesky on a small scheduler over Canelé, and checks the result. Start it by a "
      "launcher: canele-run -n 4 canele-cholesky. The engine is set up by CANELE_... variables, e.g. CANELE_DRIVERS."};
  app.set_version_flag("--version", canele_version());
  app.add_option("--n", options->size, "Rows of the matrix")->check(CLI::Range(1, most_rows))->capture_default_str();
  app.add_option("--nb", options->tile, "Rows of a tile")->check(CLI::Range(1, most_tile))->capture_default_str();
  app.add_option("--grid",
                 [options](const CLI::results_t& texts) {
                   const std::string problem = parse_grid(texts.front(), *options);
                   if (!problem.empty()) throw CLI::ValidationError("--grid", problem);
                   return true;
                 })
      ->description("Grid of ranks that own the tiles, e.g. 4x2 (default: the squarest)")
      ->type_name("RxC");
  app.add_option("--threads", options->threads, "Threads of each rank that compute")
      ->check(CLI::Range(1, most_threads))
      ->capture_default_str();
  app.add_option("--look-ahead", options->look_ahead, "Columns whose tiles may arrive before they are needed")
      ->check(CLI::Range(1, most_rows))
      ->capture_default_str();
  app.add_option("--way", options->ways,
                 "How a tile goes to several ranks: sends (one each), or a multicast of the shape auto, flat, chain, "
                 "binomial, 4-nomial, 8-nomial; several are used in turn")
      ->delimiter(',')
      ->check(CLI::IsMember(way_names()))
      ->capture_default_str();
  app.add_option("--runs", options->runs, "Runs of each way")->check(CLI::Range(1, most_runs))->capture_default_str();
  app.add_option("--seed", options->seed, "Seed of the matrix")->capture_default_str();
  app.add_flag("!--no-check", options->check, "Do not compute the residual");
  app.add_flag("--json", options->json, "Print JSON, a line for each run");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    *code = app.exit(problem);
    return false;
  }
  return true;
}

void choose_grid(Options& options, int ranks) {
  if (options.grid_rows == 0) {
    options.grid_rows = squarest_rows(ranks);
    options.grid_columns = ranks / options.grid_rows;
  }
  if (options.grid_rows * options.grid_columns == ranks) return;
  throw std::runtime_error("a grid of " + std::to_string(options.grid_rows) + "x" +
                           std::to_string(options.grid_columns) + " does not fit " + std::to_string(ranks) +
                           " ranks; expected: a product equal to the number of ranks");
}

}  // namespace canele::cholesky
