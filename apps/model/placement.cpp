// SPDX-License-Identifier: BSD-3-Clause
//
// Table of placements.
//
// What counts is that neighbours are on one core: in a chain, one of them sends while the other receives.
#include "apps/model/placement.hpp"

#include <fmt/core.h>

#include <array>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "comm/collectives/placement.hpp"

namespace canele::model {
namespace {

namespace place = comm::collectives::placement;
using nlohmann::json;

constexpr std::array<place::Policy, 3> policies = {place::Policy::bind, place::Policy::numa, place::Policy::odd_even};
constexpr std::uint32_t most = 4096;

}  // namespace

json placement_table(std::uint32_t cores, std::uint32_t ranks) {
  if (ranks < 1 || ranks > cores || cores > most) {
    throw std::runtime_error(
        fmt::format("{} ranks on {} cores; expected: at least 1 rank, at most as many as cores, and up to {} cores",
                    ranks, cores, most));
  }
  json table = {{"cores", cores}, {"ranks", ranks}, {"rows", json::array()}};
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    json row = {{"rank", rank}, {"own_core", place::own_core_of(cores, ranks, rank)}};
    for (const place::Policy policy : policies) {
      row[std::string(place::name_of(policy))] = place::core_of(policy, cores, ranks, rank);
    }
    table["rows"].push_back(row);
  }
  for (const place::Policy policy : policies) {
    const std::string name(place::name_of(policy));
    std::uint32_t shared = 0;
    for (std::uint32_t rank = 0; rank + 1 < ranks; ++rank) {
      shared += table["rows"][rank][name] == table["rows"][rank + 1][name] ? 1 : 0;
    }
    table["neighbours_on_one_core"][name] = shared;
  }
  return table;
}

void print_placement_table(const json& table) {
  fmt::print("{} cores, {} ranks: where the progression of each rank runs\n", table.at("cores").get<int>(),
             table.at("ranks").get<int>());
  fmt::print("  bind       its own core\n");
  fmt::print("  numa       ceil((round(rank / d) + 1) d) - 1, d = cores / (cores - ranks): an idle core nearby\n");
  fmt::print("  odd-even   d (rank mod (cores - ranks)) + d - 1: neighbours on different cores\n\n");
  fmt::print("{:>6}{:>10}{:>8}{:>8}{:>10}\n", "rank", "own core", "bind", "numa", "odd-even");
  for (const json& row : table.at("rows")) {
    fmt::print("{:>6}{:>10}{:>8}{:>8}{:>10}\n", row.at("rank").get<int>(), row.at("own_core").get<int>(),
               row.at("bind").get<int>(), row.at("numa").get<int>(), row.at("odd-even").get<int>());
  }
  const json& shared = table.at("neighbours_on_one_core");
  fmt::print("neighbours on one core: bind {}, numa {}, odd-even {}\n", shared.at("bind").get<int>(),
             shared.at("numa").get<int>(), shared.at("odd-even").get<int>());
}

}  // namespace canele::model
