// SPDX-License-Identifier: BSD-3-Clause
//
// The plan of a match: which receives are posted, which messages are sent, in which order, and what each receive gets.
//
// Used by match (both ranks), matcher_counts and unit tests. Threads: pure functions. Receives for any tag are posted
// after all others. Such a receive takes any message of the session. If it is posted last, it cannot take a message
// that an older receive waits for. Every receive thus gets a message for certain, in every order.
//
// The load fds is matching as in the Fire Dynamics Simulator. Source: M. G. F. Dosanjh, "Improving HPC Communication
// Library Performance on Modern Architectures" (PhD, University of New Mexico, 2017).
//
//   lists are long, with 128 to 8,192 processes     section 5.4.6, Figure 5.25
//   a match is seldom the first one of the list     section 5.4.6: distributions are "random-like"
//   both lists are searched                         Table 5.1; most of the time that of unexpected messages
//   tags grow with the number of processes          section 6.3.3
//
// The dissertation has no histogram of lengths or depths. Here a list has one entry for each process, with a tag of its
// own. All places but the head are equally likely. One rank sends all messages.
//
//   posted:      entry  0  1  2  …   receives posted in this order, those for any tag last; messages sent in `order`
//   unexpected:  entry  0  1  2  …   messages sent in this order; receives posted in `order`, those for any tag last
//
// Receives from any source need no such care, because no two messages have equal tags. Rejected: a session of its own
// for any tag. Arrivals in the other session would not have to compare post orders. Rejected: any tag in the middle,
// with messages ordered to suit it. Only in-order would be left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "huge_array.hpp"

namespace canele::perf {

enum class Direction { posted, unexpected };
enum class Order { in_order, reverse, shuffled, deep };  ///< deep: shuffled, but the oldest entry is matched last
enum class Load { none, fds };

const char* name_of(Direction direction);
const char* name_of(Order order);
const char* name_of(Load load);

/// What the user asked for. Both ranks make equal plans from it.
struct MatchOptions {
  std::vector<std::uint64_t> receives;
  std::vector<Direction> directions = {Direction::posted, Direction::unexpected};
  std::vector<Order> orders = {Order::in_order, Order::reverse, Order::shuffled};
  Load load = Load::none;
  bool every_matcher = false;          ///< a job for each one, in turn
  double any_source = 0, any_tag = 0;  ///< percent
  std::string matcher;                 ///< "" = as configured
  bool cold = false;
  bool counts = true;
  std::uint64_t seed = 1;
};

struct PlannedReceive {
  std::uint64_t tag;
  bool any_source, any_tag;
  std::uint32_t entry;  ///< the entry whose message it gets; for any tag: one of the free entries
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

/// Returns the lengths of the lists of a load.
std::vector<std::uint64_t> lengths_of(Load load);

/// Returns the tag of an entry: distinct up to 2^21 entries, scattered, and small enough for every MPI.
std::uint64_t tag_of(std::uint64_t entry);

/// Checks what the receives got (entries, in the order of posting). Throws std::runtime_error, which says which one is
/// wrong.
void check_plan(const Plan& plan, std::span<const std::uint64_t> got);

}  // namespace canele::perf
