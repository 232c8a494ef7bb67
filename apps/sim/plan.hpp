// SPDX-License-Identifier: BSD-3-Clause
//
// Plan: what the ranks of a simulated job will send to each other, known beforehand, so that it can be checked.
//
// Used by the workloads. One thread. Receives with wildcards may take each other's messages, and a job may then never
// end. Messages therefore come in groups with their own bits of the tag. Any receive of a group matches any message of
// the group, and no other message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "drivers/sim/timeline.hpp"

namespace canele::sim {

using drivers::sim::Dice;

struct PlannedMessage {
  std::uint32_t id = 0;  ///< index in Plan::messages
  int source = 0, destination = 0, session = 0;
  std::uint64_t tag = 0;
  std::size_t size = 0;
  int priority = 0;
  bool synchronous = false;
  std::uint32_t group = 0;
  std::uint32_t multicast = 0;  ///< index in Plan::multicasts, plus one; 0: not part of a multicast
};

/// Messages that are sent as one multicast: consecutive in Plan::messages, with the same bytes.
struct PlannedMulticast {
  std::uint32_t first = 0, count = 0;
  int shape = 0;  ///< enum canele_shape
};

/// Messages to one destination that its receives do not distinguish.
struct Group {
  int destination = 0, session = 0;
  std::uint64_t tag = 0;  ///< the bits that all have.
  bool one_source = true, one_tag = true;
  bool flood = false;  ///< short messages, none synchronous: nothing is sent back except acknowledgements of packets.
  bool large = false;  ///< long messages only, for receives that name exactly what they want.
  int source = 0;      ///< if one_source.
  std::vector<std::uint32_t> messages;
};

struct PlanOptions {
  int ranks = 2;
  int messages = 200;
  std::size_t longest = 400'000;
  bool flood = false;      ///< most messages go one way between two ranks, and need no reply.
  int sinks = 0;           ///< all messages go to the first `sinks` ranks; 0: to any rank.
  bool both_ways = false;  ///< with sinks: they send to the other ranks, too.
  int per_group = 8;       ///< messages, on average.
  int multicasts = 0;      ///< multicasts, in addition to the messages.
};

/// Sessions of a plan: the first ordered per tag, the second across tags.
inline constexpr int plan_sessions = 2;
inline constexpr std::uint64_t group_mask = ~std::uint64_t{0xffff};

struct Plan {
  std::vector<PlannedMessage> messages;
  std::vector<Group> groups;
  std::vector<PlannedMulticast> multicasts;
  std::vector<std::vector<std::uint32_t>> sends;     ///< by source, in order
  std::vector<std::vector<std::uint32_t>> receives;  ///< groups by destination
};

Plan make_plan(const PlanOptions& options, Dice dice);
/// Adds options.multicasts multicasts to a plan of make_plan(), and messages that share their tags.
void add_multicasts(const PlanOptions& options, Dice dice, Plan* plan);

/// Returns the plan with only these messages (unknown numbers are ignored). The messages get new numbers.
Plan only(const Plan& plan, const std::vector<std::uint32_t>& kept);

/// Returns the name that a message carries in its bytes. Each process that its source has had (world.hpp: life) gives
/// another name.
inline std::uint32_t name_of(const Plan& plan, const PlannedMessage& message, int life) {
  return message.id + static_cast<std::uint32_t>(life) * static_cast<std::uint32_t>(plan.messages.size());
}

/// Returns the message whose bytes this one has.
inline const PlannedMessage& content_of(const Plan& plan, const PlannedMessage& message) {
  return message.multicast == 0 ? message : plan.messages[plan.multicasts[message.multicast - 1].first];
}

/// Returns byte `at` of the message with that name.
inline std::byte pattern(std::uint32_t name, std::size_t at) {
  return static_cast<std::byte>((name * 2654435761u + at * 40503u + (at >> 8)) >> 3);
}

/// Returns the bytes to send: the pattern, with the name in front if there is room for it.
std::vector<std::byte> payload_of(const PlannedMessage& message, std::uint32_t name);

/// Returns a buffer for a receive, with guard bytes behind it that must not change.
inline constexpr std::byte guard_byte{0xEE};
std::vector<std::byte> guarded_buffer(std::size_t room);

}  // namespace canele::sim
