// SPDX-License-Identifier: BSD-3-Clause
//
// A random plan. One thread. Sizes cluster around those at which protocols change.
#include "apps/sim/plan.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace canele::sim {
namespace {

using drivers::sim::Dice;

constexpr std::size_t long_message = 100'000;

std::size_t random_size(Dice& dice, std::size_t longest) {
  constexpr std::array<std::size_t, 10> edges = {0, 1, 8, 48, 64, 128, 4096, 16384, 65536, 131072};
  std::size_t size = 0;
  switch (dice.under(4)) {
    case 0:
      size = dice.under(64);
      break;
    case 1:
      size = edges[dice.under(edges.size())] + dice.under(5);
      break;
    case 2:
      size = dice.under(4) == 0 ? 100'000 + dice.under(300'000) : dice.under(8192);
      break;
    default:
      size = dice.under(16) == 0 ? dice.under(longest + 1) : dice.under(512);
  }
  return std::min(size, longest);
}

Group random_group(Dice& dice, const PlanOptions& options, std::uint64_t number) {
  Group group;
  group.destination = static_cast<int>(dice.under(static_cast<std::uint64_t>(options.ranks)));
  group.tag = (number + 1) << 16;
  group.one_source = dice.under(2) == 0;
  group.one_tag = dice.under(2) == 0;
  group.source = static_cast<int>(dice.under(static_cast<std::uint64_t>(options.ranks)));
  if (dice.under(3) == 0) group.source = group.destination ^ 1;  // a neighbour: most likely on the same node
  if (group.source >= options.ranks) group.source = group.destination;
  group.large = options.longest > long_message && dice.under(6) == 0;
  if (group.large) group.one_source = group.one_tag = true;
  if (options.flood && dice.under(8) != 0) {
    group.flood = group.one_source = true;
    group.large = false;
    group.destination = 0;
    group.source = options.ranks - 1;
  }
  return group;
}

/// Directs the group of a flood to a sink, or from a sink.
void aim(Group& group, const PlanOptions& options, std::uint64_t number, Dice& dice) {
  const auto sinks = static_cast<std::uint64_t>(options.sinks), ranks = static_cast<std::uint64_t>(options.ranks);
  group.destination = static_cast<int>(number < sinks ? number : dice.under(sinks));
  if (number < sinks) {  // one group in the session where no tag counts
    group.session = 1;
    group.one_tag = group.large = group.one_source = false;
  } else if (options.both_ways && dice.under(2) == 0) {
    group.one_source = true;
    group.source = std::exchange(group.destination, static_cast<int>(dice.under(ranks)));
  } else if (group.one_source) {
    group.source = static_cast<int>(dice.under(ranks));
  }
}

}  // namespace

Plan make_plan(const PlanOptions& options, Dice dice) {
  Plan plan;
  const auto ranks = static_cast<std::size_t>(options.ranks);
  plan.sends.resize(ranks);
  plan.receives.resize(ranks);
  const std::size_t fewest = options.sinks > 0 ? static_cast<std::size_t>(2 * options.sinks) : ranks;
  const std::size_t groups = std::max(fewest, static_cast<std::size_t>(options.messages / options.per_group));
  for (std::size_t number = 0; number < groups; ++number) {
    Group group = random_group(dice, options, number);
    if (options.sinks > 0) {
      aim(group, options, number, dice);
    } else if (number < ranks) {  // one per rank in the session where no tag counts
      group.destination = static_cast<int>(number);
      group.session = 1;
      group.one_tag = group.large = group.flood = false;
    }
    plan.receives[static_cast<std::size_t>(group.destination)].push_back(static_cast<std::uint32_t>(number));
    plan.groups.push_back(group);
  }
  for (int i = 0; i < options.messages; ++i) {
    PlannedMessage message;
    message.id = static_cast<std::uint32_t>(i);
    message.group = static_cast<std::uint32_t>(dice.under(groups));
    Group& group = plan.groups[message.group];
    message.destination = group.destination;
    message.session = group.session;
    message.source = group.one_source ? group.source : static_cast<int>(dice.under(ranks));
    message.tag = group.tag | (group.one_tag ? 0 : dice.under(6));
    message.size = group.large ? dice.between(long_message, options.longest) : random_size(dice, options.longest);
    if (group.flood) message.size = dice.under(512);
    message.priority = dice.under(4) == 0 ? static_cast<int>(dice.under(10)) : 0;
    message.synchronous = !group.flood && dice.under(8) == 0;
    group.messages.push_back(message.id);
    plan.sends[static_cast<std::size_t>(message.source)].push_back(message.id);
    plan.messages.push_back(message);
  }
  return plan;
}

std::vector<std::byte> payload_of(const PlannedMessage& message, std::uint32_t name) {
  std::vector<std::byte> bytes(message.size);
  for (std::size_t at = 0; at < message.size; ++at) bytes[at] = pattern(name, at);
  if (message.size >= sizeof name) std::memcpy(bytes.data(), &name, sizeof name);
  return bytes;
}

std::vector<std::byte> guarded_buffer(std::size_t room) {
  constexpr std::size_t guards = 16;
  return std::vector<std::byte>(room + guards, guard_byte);
}

Plan only(const Plan& plan, const std::vector<std::uint32_t>& kept) {
  Plan smaller;
  smaller.groups = plan.groups;
  smaller.receives = plan.receives;
  smaller.sends.resize(plan.sends.size());
  for (Group& group : smaller.groups) group.messages.clear();
  std::uint32_t last_multicast = 0;
  for (const std::uint32_t number : kept) {
    if (number >= plan.messages.size()) continue;
    PlannedMessage message = plan.messages[number];
    message.id = static_cast<std::uint32_t>(smaller.messages.size());
    if (message.multicast != 0) {
      if (message.multicast != last_multicast)
        smaller.multicasts.push_back({message.id, 0, plan.multicasts[message.multicast - 1].shape});
      last_multicast = std::exchange(message.multicast, static_cast<std::uint32_t>(smaller.multicasts.size()));
      ++smaller.multicasts.back().count;
    }
    smaller.groups[message.group].messages.push_back(message.id);
    smaller.sends[static_cast<std::size_t>(message.source)].push_back(message.id);
    smaller.messages.push_back(message);
  }
  return smaller;
}

}  // namespace canele::sim
