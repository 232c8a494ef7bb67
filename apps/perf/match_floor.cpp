// SPDX-License-Identifier: BSD-3-Clause
//
// The floor of a match among many.
#include "match_floor.hpp"

#include <chrono>
#include <stdexcept>

namespace canele::perf {
namespace {

/// Returns the index of each entry in a list of receives or messages.
template <typename List>
std::vector<std::uint32_t> places_in(const List& list) {
  std::vector<std::uint32_t> places(list.size());
  for (std::uint32_t i = 0; i < places.size(); ++i) places[list[i].entry] = i;
  return places;
}

}  // namespace

MatchFloor::MatchFloor(const Plan& plan, Direction direction)
    : table_(plan.messages.size() * 16 / sizeof(Bucket) + 1),
      requests_(plan.receives.size()),
      messages_(direction == Direction::unexpected ? plan.messages.size() : 0),
      data_(plan.receives.size()) {
  const auto add = [this](std::uint32_t entry, std::uint32_t partner) {
    constexpr std::uint64_t scatter = 0x9e3779b97f4a7c15;  // Knuth, TAOCP 3, 6.4: multiplicative hashing
    steps_.push_back({static_cast<std::uint32_t>((entry * scatter >> 32) % table_.size()), partner});
  };
  if (direction == Direction::posted) {
    const std::vector<std::uint32_t> receives = places_in(plan.receives);
    for (const PlannedMessage& message : plan.messages) add(message.entry, receives[message.entry]);
  } else {
    const std::vector<std::uint32_t> messages = places_in(plan.messages);
    for (const PlannedReceive& receive : plan.receives) add(receive.entry, messages[receive.entry]);
  }
}

std::uint64_t MatchFloor::round() {
  ++rounds_;
  for (Message& message : messages_) message.data = rounds_;
  const auto start = std::chrono::steady_clock::now();
  messages_.empty() ? posted() : unexpected();
  std::uint64_t missing = 0;
  for (const Request& request : requests_) missing += request.ended != rounds_ ? 1 : 0;
  const std::chrono::nanoseconds taken = std::chrono::steady_clock::now() - start;
  for (const std::uint64_t word : data_) missing += word != rounds_ ? 1 : 0;
  if (missing != 0) throw std::runtime_error("a receive of the plan gets no message");
  return static_cast<std::uint64_t>(taken.count());
}

void MatchFloor::posted() {
  for (const Step& step : steps_) {
    ++table_[step.bucket].words[0];
    requests_[step.partner].ended = rounds_;
    data_[step.partner] = rounds_;
  }
}

void MatchFloor::unexpected() {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    ++table_[steps_[i].bucket].words[0];
    data_[i] = messages_[steps_[i].partner].data;
    requests_[i].ended = rounds_;
  }
}

}  // namespace canele::perf
