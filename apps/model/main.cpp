// SPDX-License-Identifier: BSD-3-Clause
//
// canele-model: models of the literature. Predicts the gain of dedicated cores, and computes split trees and
// placements.
//
// One thread. Nothing is run: the input is the profile of a run (CANELE_PROFILE), and the output is arithmetic.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "apps/model/alphas.hpp"
#include "apps/model/input.hpp"
#include "apps/model/placement.hpp"
#include "apps/model/report.hpp"
#include "apps/model/split_tree.hpp"

namespace {

using namespace canele::model;
using nlohmann::json;

struct Arguments {
  bool as_json = false;
  std::vector<std::string> profiles, least_profiles, measured_profiles;
  std::string values, alphas = "0", plot;
  double measured_s = 0;
  Question question;
  SplitQuestion split;
  std::uint32_t ranks = 0;
};

void add_dedicated(CLI::App& app, Arguments& arguments) {
  CLI::App* command = app.add_subcommand(
      "dedicated",
      "Reynier's model: t_dedicated = t_comp N/(N-D) + N_init min_init + N_test min_test + N_wait min_wait\n"
      "+ alpha N_blocking (min_init + min_wait) + (1 - alpha) t_blocking + t_other, of a run without progression:\n"
      "CANELE_WORKER=none CANELE_PROFILE=profile-%r.json canele-run -n 4 program");
  auto* profiles = command->add_option("--profile", arguments.profiles, "profiles, one file for each rank");
  auto* values = command->add_option("--values", arguments.values, "a run, or a list of them, as in thesis.json");
  profiles->excludes(values);
  command->add_option("--cores", arguments.question.cores, "N, cores of a process; overrides the file")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--dedicated", arguments.question.dedicated,
                   "D, dedicated cores among them; 0: the run already computed without them")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      ->add_option("--alpha", arguments.alphas,
                   "share of blocking calls that are converted: 0.5 or 0,0.5,1 or from:to:step")
      ->capture_default_str();
  command->add_option("--least-profile", arguments.least_profiles,
                      "a run whose waits and tests found no work, for programs whose own always find some");
  auto* measured = command->add_option("--measured", arguments.measured_s, "measured time with dedicated cores, s")
                       ->check(CLI::PositiveNumber);
  command
      ->add_option("--measured-profile", arguments.measured_profiles,
                   "profile of the run with dedicated cores, to show the differences")
      ->excludes(measured)
      ->needs(profiles);
}

void add_split_tree(CLI::App& app, Arguments& arguments) {
  CLI::App* command = app.add_subcommand(
      "split-tree", "Number of the widest levels of a binomial tree that the calling threads should execute");
  command->add_option("--cores", arguments.split.cores, "cores of the node")->capture_default_str();
  command->add_option("--from", arguments.split.from, "smallest number of ranks (default: half of the cores)");
  command->add_option("--to", arguments.split.to, "largest number of ranks (default: all cores but one)");
  command->add_flag("--variable", arguments.split.variable, "gather and scatter: messages double from level to level");
  command->add_option("--plot", arguments.plot, "draw the figure to FILE.svg");
}

void add_placement(CLI::App& app, Arguments& arguments) {
  CLI::App* command = app.add_subcommand("placement", "Core of the progression of each rank");
  command->add_option("--cores", arguments.split.cores, "cores of the node")->capture_default_str();
  command->add_option("--ranks", arguments.ranks, "ranks of the node")->required();
}

/// Returns the runs to evaluate.
std::vector<Case> cases_of(const Arguments& arguments) {
  if (!arguments.values.empty()) return read_values(arguments.values);
  if (arguments.profiles.empty()) throw std::runtime_error("no input; expected: --profile or --values");
  Case run;
  run.name =
      arguments.profiles.size() == 1 ? arguments.profiles.front() : fmt::format("{} ranks", arguments.profiles.size());
  run.run = read_profiles(arguments.profiles);
  return {run};
}

void dedicated(Arguments arguments) {
  arguments.question.alphas = parse_alphas(arguments.alphas);
  std::vector<Case> cases = cases_of(arguments);
  Observed after;
  if (!arguments.measured_profiles.empty()) {
    after = read_profiles(arguments.measured_profiles);
    arguments.measured_s = after.time_s;
  }
  if (!arguments.least_profiles.empty()) {
    const Observed least = read_profiles(arguments.least_profiles);
    for (Case& one : cases) take_least(&one.run, least);
  }
  if (arguments.measured_s > 0 && cases.size() > 1)
    throw std::runtime_error("--measured belongs to one run, and --values has several");
  json all = json::array();
  for (Case& one : cases) {
    if (arguments.measured_s > 0) one.measured_s = arguments.measured_s;
    all.push_back(judge(one, arguments.question, arguments.measured_profiles.empty() ? nullptr : &after));
  }
  if (arguments.as_json) {
    fmt::print("{}\n", all.dump(2));
    return;
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i != 0) fmt::print("\n");
    print(all[i]);
  }
}

void write_figure(const std::string& file, const json& tables) {
  if (!file.ends_with(".svg")) {
    throw std::runtime_error(fmt::format(
        "--plot {}; expected: a name that ends in .svg (rsvg-convert or a browser makes a PNG of it)", file));
  }
  std::ofstream stream(file);
  stream << split_figure(tables);
  if (!stream.flush()) throw std::runtime_error(fmt::format("--plot {}: the file cannot be written", file));
}

void split_tree(const Arguments& arguments) {
  const json tables = split_tables(arguments.split);
  if (!arguments.plot.empty()) write_figure(arguments.plot, tables);
  if (arguments.as_json) {
    fmt::print("{}\n", tables.dump(2));
  } else {
    print_split_tables(tables);
  }
}

void placement(const Arguments& arguments) {
  const json table = placement_table(arguments.split.cores, arguments.ranks);
  if (arguments.as_json) {
    fmt::print("{}\n", table.dump(2));
  } else {
    print_placement_table(table);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Models: dedicated cores, split trees, placement");
  app.require_subcommand(1);
  app.fallthrough();
  app.add_flag("--json", arguments.as_json, "print JSON instead of text");
  add_dedicated(app, arguments);
  add_split_tree(app, arguments);
  add_placement(app, arguments);
  CLI11_PARSE(app, argc, argv);
  try {
    if (app.got_subcommand("dedicated")) dedicated(arguments);
    if (app.got_subcommand("split-tree")) split_tree(arguments);
    if (app.got_subcommand("placement")) placement(arguments);
  } catch (const std::exception& problem) {
    fmt::print(stderr, "canele-model: {}\n", problem.what());
    return 1;
  }
  return 0;
}
