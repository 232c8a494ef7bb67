// SPDX-License-Identifier: BSD-3-Clause
//
// The model.
//
// Besides random choices, a seed has a bias: kinds of events, a rank and a step that go last. Random choices alone
// would hardly ever delay one send for three rounds.
#include "tests/unit/collectives/model.hpp"

#include <algorithm>
#include <cstring>

namespace canele::comm::collectives::model {

void Dice::fill(std::byte* memory, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += 8) {
    const std::uint64_t some = roll();
    std::memcpy(memory + at, &some, std::min<std::size_t>(8, bytes - at));
  }
}

Model::Model(std::vector<Rank>& ranks, Operator combine, std::uint64_t seed, int slow_rank, StepId slow)
    : ranks_(ranks),
      combine_(combine),
      dice_(seed),
      synchronous_(dice_.below(2) == 0),
      shy_kinds_(static_cast<std::uint32_t>(dice_.below(3) == 0 ? 0 : dice_.below(32))),
      shy_rank_(dice_.below(3) == 0 ? static_cast<int>(dice_.below(ranks.size())) : -1),
      slow_rank_(slow_rank),
      slow_(slow) {
  if (slow_rank_ < 0 && dice_.below(2) == 0) {
    slow_rank_ = static_cast<int>(dice_.below(ranks.size()));
    const std::size_t steps = ranks[static_cast<std::size_t>(slow_rank_)].schedule.steps().size();
    if (steps > 0) slow_ = static_cast<StepId>(dice_.below(steps));
  }
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    State state;
    const Schedule& schedule = ranks[rank].schedule;
    state.scratch.resize(schedule.scratch_bytes());
    dice_.fill(state.scratch.data(), state.scratch.size());
    for (const Step& step : schedule.steps()) state.needs.push_back(step.needs);
    states_.push_back(std::move(state));
  }
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const std::vector<std::uint32_t>& needs = states_[rank].needs;
    for (StepId step = 0; step < needs.size(); ++step) {
      if (needs[step] == 0) enabled_.push_back({Kind::start, static_cast<int>(rank), step});
    }
  }
}

const Step& Model::step_of(int rank, StepId step) const {
  return ranks_[static_cast<std::size_t>(rank)].schedule.steps()[step];
}

void Model::wrong(int rank, StepId step, const std::string& what) {
  if (wrong_.empty()) wrong_ = "rank " + std::to_string(rank) + ", step " + std::to_string(step) + ": " + what;
}

std::byte* Model::at(int rank, const Range& range) {
  static std::byte nothing;
  if (range.length == 0) return &nothing;
  const auto own = static_cast<std::size_t>(rank);
  std::vector<std::byte>& memory = range.space == Space::scratch  ? states_[own].scratch
                                   : range.space == Space::output ? ranks_[own].output
                                                                  : ranks_[own].input;
  if (range.offset + range.length > memory.size()) {
    wrong(rank, no_step, "beyond the end of its memory");
    return nullptr;
  }
  return memory.data() + range.offset;
}

std::size_t Model::pick() {
  std::size_t choice = 0;
  for (int tries = 0; tries < 12; ++tries) {
    choice = dice_.below(enabled_.size());
    const Event& event = enabled_[choice];
    const bool shy = (shy_kinds_ >> static_cast<unsigned>(event.kind) & 1U) != 0 || event.rank == shy_rank_;
    if (!shy && !is_slow(event)) break;
  }
  if (!is_slow(enabled_[choice])) return choice;
  for (std::size_t other = 0; other < enabled_.size(); ++other) {
    if (!is_slow(enabled_[other])) return other;
  }
  return choice;
}

std::string Model::run() {
  while (!enabled_.empty() && wrong_.empty()) {
    const std::size_t choice = pick();
    const Event event = enabled_[choice];
    enabled_[choice] = enabled_.back();
    enabled_.pop_back();
    happen(event);
  }
  if (!wrong_.empty()) return wrong_;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const State& state = states_[rank];
    if (state.ended != state.needs.size()) {
      return "rank " + std::to_string(rank) + " hangs: " + std::to_string(state.ended) + " of " +
             std::to_string(state.needs.size()) + " steps have ended";
    }
  }
  for (const auto& [channel, message] : messages_) {
    if (!message.done) return "a message was left over";
  }
  return "";
}

void Model::happen(const Event& event) {
  switch (event.kind) {
    case Kind::start:
      return start(event.rank, event.step);
    case Kind::read:
      return read(event.rank, event.step);
    case Kind::end_send:
      return end(event.rank, event.step);
    case Kind::deliver: {
      Message& message = message_of(event.rank, event.step);
      message.here = true;
      return meet(message);
    }
    case Kind::complete:
      return complete(event.rank, event.step);
  }
}

Model::Message& Model::message_of(int rank, StepId id) {
  const Step& step = step_of(rank, id);
  const bool sent = step.action == Action::send;
  return messages_[Channel{sent ? rank : step.peer, sent ? step.peer : rank, step.slot}];
}

void Model::start(int rank, StepId id) {
  const Step& step = step_of(rank, id);
  if (step.action == Action::send) return start_send(rank, id);
  if (step.action == Action::receive) return start_receive(rank, id);
  if (step.action != Action::join) {
    const std::byte* const from = at(rank, step.from);
    std::byte* const to = at(rank, step.to);
    if (from == nullptr || to == nullptr) return;
    if (step.from.length != step.to.length) return wrong(rank, id, "lengths differ");
    if (step.action == Action::copy) {
      std::memcpy(to, from, step.to.length);
    } else {
      combine_(from, to, step.to.length, step.action == Action::append);
    }
  }
  end(rank, id);
}

void Model::start_send(int rank, StepId id) {
  State& state = states_[static_cast<std::size_t>(rank)];
  const std::uint32_t inflight_limit = ranks_[static_cast<std::size_t>(rank)].schedule.inflight_limit();
  if (inflight_limit != 0 && state.sends >= inflight_limit) {
    state.deferred.insert(std::upper_bound(state.deferred.begin(), state.deferred.end(), id), id);
    return;
  }
  const int peer = step_of(rank, id).peer;
  if (peer < 0 || peer >= static_cast<int>(ranks_.size()) || peer == rank) return wrong(rank, id, "no such peer");
  seen_.most_sends = std::max(seen_.most_sends, ++state.sends);
  Message& message = message_of(rank, id);
  if (message.send != no_step) return wrong(rank, id, "a second message of this slot");
  message.sender = rank;
  message.send = id;
  enabled_.push_back({Kind::read, rank, id});
}

void Model::start_receive(int rank, StepId id) {
  const Step& step = step_of(rank, id);
  if (step.peer < 0 || step.peer >= static_cast<int>(ranks_.size()) || step.peer == rank) {
    return wrong(rank, id, "no such peer");
  }
  std::byte* const to = at(rank, step.to);
  if (to == nullptr) return;
  dice_.fill(to, step.to.length);
  Message& message = message_of(rank, id);
  if (message.posted) return wrong(rank, id, "a second receive of this slot");
  message.posted = true;
  message.receiver = rank;
  message.receive = id;
  meet(message);
}

void Model::read(int rank, StepId id) {
  const Step& step = step_of(rank, id);
  const std::byte* const from = at(rank, step.from);
  if (from == nullptr) return;
  Message& message = message_of(rank, id);
  message.bytes.assign(from, from + step.from.length);
  ++seen_.messages;
  seen_.bytes += step.from.length;
  enabled_.push_back({Kind::deliver, rank, id});
  if (!synchronous_) enabled_.push_back({Kind::end_send, rank, id});
}

void Model::meet(Message& message) {
  if (message.posted && message.here) enabled_.push_back({Kind::complete, message.receiver, message.receive});
}

void Model::complete(int rank, StepId id) {
  const Step& step = step_of(rank, id);
  Message& message = message_of(rank, id);
  if (message.bytes.size() != step.to.length) {
    return wrong(
        rank, id,
        "a message of " + std::to_string(message.bytes.size()) + " bytes, not " + std::to_string(step.to.length));
  }
  if (step.to.length != 0) std::memcpy(at(rank, step.to), message.bytes.data(), step.to.length);
  message.bytes = {};
  message.done = true;
  if (synchronous_) enabled_.push_back({Kind::end_send, message.sender, message.send});
  end(rank, id);
}

void Model::end(int rank, StepId id) {
  State& state = states_[static_cast<std::size_t>(rank)];
  const Schedule& schedule = ranks_[static_cast<std::size_t>(rank)].schedule;
  const Step& step = schedule.steps()[id];
  ++state.ended;
  if (step.action == Action::send) {
    --state.sends;
    if (!state.deferred.empty()) {
      const StepId next = state.deferred.front();
      state.deferred.erase(state.deferred.begin());
      enabled_.push_back({Kind::start, rank, next});
    }
  }
  for (const StepId after : schedule.after(step)) {
    if (state.needs[after]-- == 0) return wrong(rank, after, "more has ended than it needs");
    if (state.needs[after] == 0) enabled_.push_back({Kind::start, rank, after});
  }
}

}  // namespace canele::comm::collectives::model
