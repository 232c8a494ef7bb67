// SPDX-License-Identifier: BSD-3-Clause
//
// Pairs of ranks and their messages. Runs in the main fiber of each rank.
//
// All messages of one direction have one tag, so each must match the receive that was posted for it.
#include "apps/sim/exchange.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace canele::sim {
namespace {

constexpr std::size_t pairs_at_a_time = 2;

/// Chooses `partners` other ranks for each rank, without repeating a pair.
std::vector<std::pair<int, int>> choose_pairs(const ExchangeOptions& options, Dice& dice) {
  std::set<std::pair<int, int>> pairs;
  const auto all = static_cast<std::size_t>(options.ranks) * static_cast<std::size_t>(options.ranks - 1) / 2;
  for (int rank = 0; rank < options.ranks; ++rank) {
    for (int chosen = 0; chosen < options.partners && pairs.size() < all;) {
      const auto other = static_cast<int>(dice.under(static_cast<std::uint64_t>(options.ranks)));
      const std::pair pair(std::min(rank, other), std::max(rank, other));
      if (other != rank && pairs.insert(pair).second) ++chosen;
    }
  }
  std::vector<std::pair<int, int>> order(pairs.begin(), pairs.end());
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[dice.under(i)]);
  return order;
}

void plan_direction(Plan& plan, const ExchangeOptions& options, int source, int destination, Dice& dice) {
  Group group;
  const auto number = static_cast<std::uint32_t>(plan.groups.size());
  group.source = source;
  group.destination = destination;
  group.tag = (std::uint64_t{number} + 1) << 16;
  const auto large = static_cast<int>(dice.under(static_cast<std::uint64_t>(options.small_messages) + 1));
  for (int i = 0; i <= options.small_messages; ++i) {
    PlannedMessage message;
    message.id = static_cast<std::uint32_t>(plan.messages.size());
    message.source = source;
    message.destination = destination;
    message.tag = group.tag;
    message.group = number;
    message.size =
        i == large ? dice.between(options.shortest_large, options.longest_large) : sizeof message.id + dice.under(996);
    group.messages.push_back(message.id);
    plan.sends[static_cast<std::size_t>(source)].push_back(message.id);
    plan.messages.push_back(message);
  }
  plan.receives[static_cast<std::size_t>(destination)].push_back(number);
  plan.groups.push_back(std::move(group));
}

}  // namespace

Plan plan_exchange(const ExchangeOptions& options, Dice dice) {
  Plan plan;
  plan.sends.resize(static_cast<std::size_t>(options.ranks));
  plan.receives.resize(static_cast<std::size_t>(options.ranks));
  for (const auto& [a, b] : choose_pairs(options, dice)) {
    plan_direction(plan, options, a, b, dice);
    plan_direction(plan, options, b, a, dice);
  }
  return plan;
}

ExchangeRank::ExchangeRank(const Plan& plan, Oracle& oracle, int rank) : plan_(plan), oracle_(oracle), rank_(rank) {}

void ExchangeRank::run(canele_engine_t* engine) {
  canele_session_open(engine, "exchange", 0, &session_);
  const auto& mine = plan_.receives[static_cast<std::size_t>(rank_)];
  while (next_ < mine.size() || !open_.empty()) {
    while (next_ < mine.size() && open_.size() < pairs_at_a_time) begin(mine[next_++]);
    finish(*open_.front());
    open_.pop_front();
  }
}

void ExchangeRank::begin(std::uint32_t incoming) {
  auto pair = std::make_unique<Pair>();
  const Group& in = plan_.groups[incoming];
  const Group& out = plan_.groups[incoming ^ 1];
  pair->incoming = &in;
  pair->receives.resize(in.messages.size());
  pair->sends.resize(out.messages.size());
  for (std::size_t i = 0; i < in.messages.size(); ++i) {
    Transfer& receive = pair->receives[i];
    receive.message = &plan_.messages[in.messages[i]];
    receive.posted = ++posts_;
    receive.bytes = guarded_buffer(receive.message->size);
    canele_irecv(session_, in.source, in.tag, CANELE_TAG_EXACT, receive.bytes.data(), receive.message->size,
                 &receive.request);
  }
  for (std::size_t i = 0; i < out.messages.size(); ++i) {
    Transfer& send = pair->sends[i];
    const PlannedMessage& message = plan_.messages[out.messages[i]];
    send.message = &message;
    send.bytes = payload_of(message, message.id);
    canele_isend(session_, out.destination, out.tag, send.bytes.data(), message.size, &send.request);
  }
  open_.push_back(std::move(pair));
}

void ExchangeRank::finish(Pair& pair) {
  canele_status_t status{};
  for (Transfer& receive : pair.receives) {
    canele_wait(&receive.request, &status);
    oracle_.received(*pair.incoming, status, receive.bytes, receive.message->size, receive.posted, false);
  }
  for (Transfer& send : pair.sends) {
    canele_wait(&send.request, &status);
    oracle_.sent(*send.message, status, false);
  }
}

std::string ExchangeRank::state() const {
  const std::size_t all = plan_.receives[static_cast<std::size_t>(rank_)].size();
  std::string text = "rank " + std::to_string(rank_) + ": " + std::to_string(next_ - open_.size()) + " of " +
                     std::to_string(all) + " partners are done";
  for (const auto& pair : open_) text += ", works on rank " + std::to_string(pair->incoming->source);
  return text;
}

}  // namespace canele::sim
