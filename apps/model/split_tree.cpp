// SPDX-License-Identifier: BSD-3-Clause
//
// Tables and figure of split trees.
//
// The unit of time is one transfer of the buffer, or of the smallest message if messages double from level to level.
#include "apps/model/split_tree.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "apps/model/figure.hpp"
#include "comm/collectives/split_tree.hpp"

namespace canele::model {
namespace {

namespace tree = comm::collectives::split_tree;
using nlohmann::json;

constexpr std::uint32_t most_cores = 4096;
constexpr std::size_t curves = 4;  // S = 0 to 3, as in the paper

json row_of(const tree::Node& node, tree::Sizes sizes) {
  json row = {{"ranks", node.ranks},
              {"height", tree::height(node.ranks)},
              {"communication_cores", tree::communication_cores(node)},
              {"blocking", tree::blocking_time(node.ranks, sizes)},
              {"computation", tree::computation(node, sizes)},
              {"best_split", tree::best_split(node, sizes)},
              {"messages", json::array()}};
  for (std::uint32_t level = 1; level <= tree::height(node.ranks); ++level) {
    row["messages"].push_back(tree::messages_on(node.ranks, level));
  }
  for (std::uint32_t split = 0; split <= tree::height(node.ranks); ++split) {
    row["nonblocking"].push_back(tree::nonblocking_time(node, split, sizes));
    row["overlapped"].push_back(tree::overlapped_time(node, split, sizes));
  }
  return row;
}

double best_time(const json& row) { return row.at("overlapped").at(row.at("best_split").get<std::size_t>()); }

/// Prints one line for each number of ranks: the node, then the list `key`. `marked`: the best split has a star.
void print_table(const json& tables, const char* title, const char* key, char heading, std::uint32_t first,
                 int decimals, bool marked) {
  fmt::print("\n{}\n{:>6}{:>4}{:>5}", title, "ranks", "H", "P");
  const std::size_t columns = tables.at("rows").back().at(key).size();
  for (std::size_t i = 0; i < columns; ++i) fmt::print("{:>9}", fmt::format("{}{}", heading, first + i));
  fmt::print("\n");
  for (const json& row : tables.at("rows")) {
    fmt::print("{:>6}{:>4}{:>5}", row.at("ranks").get<int>(), row.at("height").get<int>(),
               row.at("communication_cores").get<int>());
    const auto best = row.at("best_split").get<std::size_t>();
    for (std::size_t i = 0; i < row.at(key).size(); ++i) {
      fmt::print("{:>8.{}f}{}", row.at(key).at(i).get<double>(), decimals, marked && i == best ? '*' : ' ');
    }
    fmt::print("\n");
  }
}

}  // namespace

json split_tables(const SplitQuestion& question) {
  if (question.cores < 2 || question.cores > most_cores) {
    throw std::runtime_error(fmt::format("--cores {}; expected: 2 to {}", question.cores, most_cores));
  }
  const std::uint32_t from = question.from != 0 ? question.from : (question.cores + 1) / 2;
  const std::uint32_t to = question.to != 0 ? question.to : question.cores - 1;
  if (from > to || to >= question.cores) {
    throw std::runtime_error(
        fmt::format("ranks {} to {} of {} cores: expected --from at most --to, and --to "
                    "below the cores, so that one is left for communication",
                    from, to, question.cores));
  }
  const tree::Sizes sizes = question.variable ? tree::Sizes::doubling : tree::Sizes::equal;
  json tables = {
      {"cores", question.cores}, {"variable", question.variable}, {"rows", json::array()}, {"changes", json::array()}};
  for (std::uint32_t ranks = from; ranks <= to; ++ranks) {
    const json row = row_of({question.cores, ranks}, sizes);
    json& changes = tables["changes"];
    if (changes.empty() || changes.back().at("best_split") != row.at("best_split")) {
      changes.push_back({{"ranks", ranks}, {"best_split", row.at("best_split")}});
    }
    if (!tables.contains("best") || best_time(row) < tables["best"].at("overlapped").get<double>()) {
      tables["best"] = {{"ranks", ranks}, {"best_split", row.at("best_split")}, {"overlapped", best_time(row)}};
    }
    tables["rows"].push_back(row);
  }
  return tables;
}

void print_split_tables(const json& tables) {
  fmt::print("{} cores; H levels; P cores left for communication; times in {}\n", tables.at("cores").get<int>(),
             tables.at("variable").get<bool>() ? "transfers of a leaf's message, which doubles from level to level"
                                               : "transfers of the buffer");
  print_table(tables, "messages on each level, from the leaves on (F)", "messages", 'i', 1, 0, false);
  print_table(tables, "non-blocking time with the S widest levels in the calling thread", "nonblocking", 'S', 0, 2,
              false);
  print_table(tables, "overlapped time: with the computation that would hide a blocking call; * is the least",
              "overlapped", 'S', 0, 2, true);
  fmt::print("\nbest split:");
  const char* separator = " ";
  for (const json& change : tables.at("changes")) {
    fmt::print("{}S = {} from {} ranks on", separator, change.at("best_split").get<int>(),
               change.at("ranks").get<int>());
    separator = ", ";
  }
  const json& best = tables.at("best");
  fmt::print("\nbest of all: {} ranks, S = {}: {:.2f}\n", best.at("ranks").get<int>(), best.at("best_split").get<int>(),
             best.at("overlapped").get<double>());
}

std::string split_figure(const json& tables) {
  Figure figure{fmt::format("{} cores: split trees{}", tables.at("cores").get<int>(),
                            tables.at("variable").get<bool>() ? ", messages that double" : ""),
                "ranks",
                "overlapped time, transfers",
                {}};
  for (std::size_t split = 0; split < curves; ++split) {
    Curve curve{fmt::format("S = {}", split), {}};
    for (const json& row : tables.at("rows")) {
      if (split >= row.at("overlapped").size()) continue;
      curve.points.push_back({row.at("ranks").get<double>(), row.at("overlapped").at(split).get<double>()});
    }
    if (!curve.points.empty()) figure.curves.push_back(curve);
  }
  Curve serial{"blocking, then computing", {}};
  for (const json& row : tables.at("rows")) {
    serial.points.push_back(
        {row.at("ranks").get<double>(), row.at("blocking").get<double>() + row.at("computation").get<double>()});
  }
  figure.curves.push_back(serial);
  return svg(figure);
}

}  // namespace canele::model
