// SPDX-License-Identifier: BSD-3-Clause
//
// The plan of a match.
//
// The shuffle is written out here, and once more in peers/mpi_match.c, because a printed seed must mean the same
// everywhere.
#include "match_plan.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace canele::perf {
namespace {

std::vector<std::uint32_t> numbers(std::size_t count) {
  std::vector<std::uint32_t> all(count);
  std::iota(all.begin(), all.end(), 0u);
  return all;
}

/// splitmix64.
std::uint64_t random(std::uint64_t& state) {
  std::uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

void shuffle(std::span<std::uint32_t> all, std::uint64_t seed) {
  for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random(seed) % i]);
}

/// Orders the entries so that no match is at the head of the list, except the last one: entry 0 stays there. All others
/// are at random places behind it.
void order_deep(std::vector<std::uint32_t>& all, std::uint64_t seed) {
  std::rotate(all.begin(), all.begin() + 1, all.end());
  shuffle({all.begin(), all.end() - 1}, seed);
}

/// Chooses the entries that have a wildcard: at least one if there are to be any.
std::vector<bool> choose(double percent, std::size_t entries, std::uint64_t seed) {
  std::vector<bool> chosen(entries, false);
  if (percent <= 0) return chosen;
  std::vector<std::uint32_t> all = numbers(entries);
  shuffle(all, seed);
  const double share = std::round(static_cast<double>(entries) * percent / 100);
  const std::size_t count = std::clamp<std::size_t>(static_cast<std::size_t>(share), 1, entries);
  for (std::size_t i = 0; i < count; ++i) chosen[all[i]] = true;
  return chosen;
}

}  // namespace

const char* name_of(Direction direction) { return direction == Direction::posted ? "posted" : "unexpected"; }

const char* name_of(Order order) {
  switch (order) {
    case Order::in_order:
      return "in-order";
    case Order::reverse:
      return "reverse";
    case Order::shuffled:
      return "shuffled";
    case Order::deep:
      return "deep";
  }
  return "";
}

const char* name_of(Load load) { return load == Load::fds ? "fds" : "none"; }

std::vector<std::uint64_t> lengths_of(Load load) {
  if (load == Load::none) return {};
  return {128, 256, 512, 1024, 2048, 4096, 8192};  // of fds: the processes of Dosanjh's Figure 5.25
}

std::uint64_t tag_of(std::uint64_t entry) {
  constexpr std::uint64_t odd = 2654435761, bits = (1u << 21) - 1;  // an odd factor permutes the numbers below 2^21
  return entry * odd & bits;
}

Plan make_plan(const MatchOptions& options, Direction direction, Order order, std::size_t entries) {
  const std::vector<bool> any_source = choose(options.any_source, entries, options.seed + 1);
  const std::vector<bool> any_tag = choose(options.any_tag, entries, options.seed + 2);
  const std::vector<std::uint32_t> queued = numbers(entries);
  std::vector<std::uint32_t> matched = queued;
  if (order == Order::reverse) std::reverse(matched.begin(), matched.end());
  if (order == Order::shuffled) shuffle(matched, options.seed);
  if (order == Order::deep && entries > 0) order_deep(matched, options.seed);
  const bool posted = direction == Direction::posted;

  Plan plan;
  plan.messages.reserve(entries);
  plan.receives.reserve(entries);
  for (const std::uint32_t entry : posted ? matched : queued) plan.messages.push_back({tag_of(entry), entry});
  for (const bool last : {false, true}) {
    for (const std::uint32_t entry : posted ? queued : matched) {
      if (any_tag[entry] != last) continue;
      plan.receives.push_back({last ? 0 : tag_of(entry), any_source[entry], last, entry});
    }
  }
  return plan;
}

void check_plan(const Plan& plan, std::span<const std::uint64_t> got) {
  std::vector<bool> free_entries(plan.receives.size(), false);
  for (const PlannedReceive& receive : plan.receives) free_entries[receive.entry] = receive.any_tag;
  for (std::size_t i = 0; i < plan.receives.size(); ++i) {
    const PlannedReceive& receive = plan.receives[i];
    const std::uint64_t entry = i < got.size() ? got[i] : plan.receives.size();
    const bool right = receive.any_tag ? entry < free_entries.size() && free_entries[entry] : entry == receive.entry;
    if (!right) {
      throw std::runtime_error(
          "receive " + std::to_string(i) + " got message " + std::to_string(entry) + "; expected: " +
          (receive.any_tag ? "one that no other receive names or has got" : std::to_string(receive.entry)));
    }
    if (receive.any_tag) free_entries[entry] = false;
  }
}

}  // namespace canele::perf
