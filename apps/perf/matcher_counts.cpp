// SPDX-License-Identifier: BSD-3-Clause
//
// Counts the matches of a plan.
//
// Only this file of canele-perf uses the engine's internals: the matcher alone, not an engine.
#include "matcher_counts.hpp"

#include <cassert>
#include <sstream>
#include <stdexcept>

#include "comm/config/names.hpp"
#include "comm/matching/alternatives/factory.hpp"
#include "comm/matching/matcher.hpp"

namespace canele::perf {
namespace {

using comm::CountingMatcher;
using comm::MatchSession;
using comm::PostedNode;
using comm::UnexpectedNode;

constexpr std::int32_t sender = 1;

void expect(bool holds) {
  if (!holds) throw std::runtime_error("the matcher does not do what the plan says");
}

struct Replay {
  Replay(const Plan& to_play, const std::string& name)
      : plan(to_play),
        matcher(1, comm::matching::make_alternative(name, 1)),
        receives(to_play.receives.size()),
        messages(to_play.messages.size()) {
    for (std::size_t i = 0; i < receives.size(); ++i) {
      receives[i].tag = plan.receives[i].tag;
      receives[i].mask = plan.receives[i].any_tag ? 0 : ~std::uint64_t{0};
      receives[i].source = plan.receives[i].any_source ? comm::rank_any : sender;
    }
    for (std::size_t i = 0; i < messages.size(); ++i) {
      messages[i].tag = plan.messages[i].tag;
      messages[i].source = sender;
    }
  }

  void queue_receives() {
    for (PostedNode& receive : receives) expect(matcher.post(session, receive) == nullptr);
  }
  void queue_messages() {
    for (UnexpectedNode& message : messages) {
      expect(matcher.arrive(session, message.tag, sender) == nullptr);
      matcher.store(session, message);
    }
  }
  void match_messages() {
    for (const UnexpectedNode& message : messages) expect(matcher.arrive(session, message.tag, sender) != nullptr);
  }
  void match_receives() {
    for (PostedNode& receive : receives) expect(matcher.post(session, receive) != nullptr);
  }

  const Plan& plan;
  CountingMatcher matcher;
  MatchSession session;
  std::vector<PostedNode> receives;
  std::vector<UnexpectedNode> messages;
};

Histogram copy_of(const comm::matching::Histogram& from) {
  Histogram rows;
  for (std::size_t bucket = 0; bucket < comm::matching::Histogram::buckets; ++bucket) {
    if (from[bucket] != 0) rows.emplace_back(comm::matching::Histogram::least_of(bucket), from[bucket]);
  }
  return rows;
}

}  // namespace

std::vector<std::string> matchers() {
  std::istringstream words{std::string(comm::known_matchers)};
  std::vector<std::string> names;
  for (std::string name; words >> name;) names.push_back(name);
  return names;
}

MatcherCounts count_matches(const Plan& plan, Direction direction, const std::string& matcher) {
  assert(!plan.receives.empty() && plan.receives.size() == plan.messages.size());
  Replay replay(plan, matcher);
  const bool posted = direction == Direction::posted;
  const auto queue = [&] { posted ? replay.queue_receives() : replay.queue_messages(); };
  const auto match = [&] { posted ? replay.match_messages() : replay.match_receives(); };
  if (matcher == "table") {  // as in the engine after one round: the table has grown, its indexes are made
    queue();
    match();
  }
  queue();
  const auto matches = static_cast<double>(plan.receives.size());
  MatcherCounts counts;
  counts.bytes = static_cast<double>(replay.matcher.bytes()) / matches;
  const comm::matching::Tally before = replay.matcher.statistics().total;
  match();
  const comm::matching::Statistics& after = replay.matcher.statistics();
  counts.attempts = static_cast<double>(after.total.attempts - before.attempts) / matches;
  counts.lines = static_cast<double>(after.total.lines - before.lines) / matches;
  counts.search_length = copy_of(after.search_length);
  counts.depth = copy_of(posted ? after.posted : after.unexpected);
  return counts;
}

}  // namespace canele::perf
