// SPDX-License-Identifier: BSD-3-Clause
//
// The plan of a match: which receives are posted, which messages are sent, in which order, and what each receive gets.
//
// Who: match (both ranks), matcher_counts, unit tests. Threads: pure functions.
// Surprise: receives for any tag are posted after all others. Such a receive takes any message of the session; posted
//     last, it cannot take one that an older receive waits for, so that every receive has a message for certain, in
//     every order.
//
//   posted:      entry  0  1  2  …   receives posted in this order, those for any tag last; messages sent in `order`
//   unexpected:  entry  0  1  2  …   messages sent in this order; receives posted in `order`, those for any tag last
//
// Receives from any source need no such care: no two messages have the same tag.
// Rejected: a session of its own for any tag (arrivals in the other one would not have to compare stamps); any tag in
//     the middle, and messages ordered so that it comes out (only in-order is left then).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "huge_array.hpp"

namespace canele::perf {

enum class Direction { posted, unexpected };
enum class Order { in_order, reverse, shuffled };

const char* name_of(Direction direction);
const char* name_of(Order order);

/// What the user asked for. Both ranks make the same plan from it.
struct MatchOptions {
  std::vector<std::uint64_t> receives;
  std::vector<Direction> directions = {Direction::posted, Direction::unexpected};
  std::vector<Order> orders = {Order::in_order, Order::reverse, Order::shuffled};
  double any_source = 0, any_tag = 0;  ///< percent
  std::string matcher;                 ///< "" = as configured
  bool cold = false;
  bool counts = true;
  std::uint64_t seed = 1;
};

struct PlannedReceive {
  std::uint64_t tag;
  bool any_source, any_tag;
  std::uint32_t entry;  ///< whose message it gets; for any tag: one of those that are free
};

struct PlannedMessage {
  std::uint64_t tag;
  std::uint32_t entry;
};

struct Plan {
  HugeArray<PlannedReceive> receives;  ///< in the order of posting
  HugeArray<PlannedMessage> messages;  ///< in the order of sending
};

Plan make_plan(const MatchOptions& options, Direction direction, Order order, std::size_t entries);

/// Tag of an entry: distinct up to 2^21 entries, scattered, and small enough for every MPI.
std::uint64_t tag_of(std::uint64_t entry);

/// Checks what the receives got (entries, in the order of posting). Throws std::runtime_error that tells which is
/// wrong.
void check_plan(const Plan& plan, std::span<const std::uint64_t> got);

}  // namespace canele::perf
