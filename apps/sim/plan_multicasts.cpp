// SPDX-License-Identifier: BSD-3-Clause
//
// Multicasts of a plan. One thread.
//
// A multicast has one tag for all of its destinations. Its messages therefore belong to a family: one group at each
// rank, all with the same bits of the tag. In the session where no tag counts, the existing groups form a family.
#include <algorithm>

#include "apps/sim/plan.hpp"

namespace canele::sim {
namespace {

using drivers::sim::Dice;

struct Family {
  std::uint64_t tag = 0;
  int session = 0, source = 0;
  bool one_source = true, one_tag = true;
  std::vector<std::uint32_t> groups;  ///< by rank
};

Family make_family(Plan* plan, std::size_t ranks, Dice& dice) {
  Family family;
  family.tag = (std::uint64_t{plan->groups.size()} + 1) << 16;
  family.one_source = dice.under(3) != 0;
  family.one_tag = dice.under(2) == 0;
  family.source = static_cast<int>(dice.under(ranks));
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    Group group;
    group.destination = static_cast<int>(rank);
    group.tag = family.tag;
    group.one_source = family.one_source;
    group.one_tag = family.one_tag;
    group.source = family.source;
    const auto number = static_cast<std::uint32_t>(plan->groups.size());
    plan->receives[rank].push_back(number);
    plan->groups.push_back(group);
    family.groups.push_back(number);
  }
  return family;
}

Family across_tags(Plan* plan, std::size_t ranks, Dice& dice) {
  Family family;
  family.session = 1;
  family.one_source = family.one_tag = false;
  family.tag = dice.under(1000) << 16;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {  // the first groups are those, see make_plan()
    plan->groups[rank].one_source = false;
    family.groups.push_back(rank);
  }
  return family;
}

std::size_t multicast_size(std::size_t longest, Dice& dice) {
  switch (dice.under(4)) {
    case 0:
      return dice.under(64);
    case 1:
      return dice.under(20'000);
    case 2:
      return dice.under(200'000);
    default:
      return dice.under(4) == 0 ? dice.under(longest + 1) : dice.under(2000);
  }
}

PlannedMessage draw(const Family& family, const PlanOptions& options, Dice& dice) {
  PlannedMessage message;
  message.session = family.session;
  message.source =
      family.one_source ? family.source : static_cast<int>(dice.under(static_cast<std::uint64_t>(options.ranks)));
  message.tag = family.tag | (family.one_tag ? 0 : dice.under(3));
  message.size = multicast_size(options.longest, dice);
  return message;
}

void add(Plan* plan, const Family& family, PlannedMessage message, int destination, std::vector<std::uint32_t>* sends) {
  message.id = static_cast<std::uint32_t>(plan->messages.size());
  message.destination = destination;
  message.group = family.groups[static_cast<std::size_t>(destination)];
  plan->groups[message.group].messages.push_back(message.id);
  sends->push_back(message.id);
  plan->messages.push_back(message);
}

/// Merges `more` into `sends` at random. The order within each list stays, and a multicast stays together.
void merge(const Plan& plan, std::vector<std::uint32_t>& sends, const std::vector<std::uint32_t>& more, Dice& dice) {
  std::vector<std::uint32_t> all;
  std::size_t a = 0, b = 0;
  while (a < sends.size() || b < more.size()) {
    const std::uint64_t left = sends.size() - a + more.size() - b;
    if (dice.under(left) < sends.size() - a) {
      all.push_back(sends[a++]);
      continue;
    }
    const std::uint32_t multicast = plan.messages[more[b]].multicast;
    do {
      all.push_back(more[b++]);
    } while (multicast != 0 && b < more.size() && plan.messages[more[b]].multicast == multicast);
  }
  sends = std::move(all);
}

}  // namespace

void add_multicasts(const PlanOptions& options, Dice dice, Plan* plan) {
  const auto ranks = static_cast<std::size_t>(options.ranks);
  std::vector<Family> families = {across_tags(plan, ranks, dice)};
  const std::uint64_t own = 1 + dice.under(3);
  for (std::uint64_t i = 0; i < own; ++i) families.push_back(make_family(plan, ranks, dice));
  std::vector<std::vector<std::uint32_t>> more(ranks);
  for (int i = 0; i < options.multicasts; ++i) {
    const Family& family = families[dice.under(families.size())];
    PlannedMessage message = draw(family, options, dice);
    auto* const sends = &more[static_cast<std::size_t>(message.source)];
    std::vector<int> others;
    for (int rank = 0; rank < options.ranks; ++rank) {
      if (rank != message.source) others.push_back(rank);
    }
    for (std::size_t j = others.size(); j > 1; --j) std::swap(others[j - 1], others[dice.under(j)]);
    if (dice.under(4) == 0) {
      add(plan, family, message, others.front(), sends);
      continue;
    }
    others.resize(1 + dice.under(others.size()));
    plan->multicasts.push_back({static_cast<std::uint32_t>(plan->messages.size()),
                                static_cast<std::uint32_t>(others.size()), static_cast<int>(dice.under(6))});
    message.multicast = static_cast<std::uint32_t>(plan->multicasts.size());
    for (const int rank : others) {
      message.priority = dice.under(4) == 0 ? static_cast<int>(dice.under(10)) : 0;
      add(plan, family, message, rank, sends);
    }
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) merge(*plan, plan->sends[rank], more[rank], dice);
}

}  // namespace canele::sim
