// SPDX-License-Identifier: BSD-3-Clause
//
// The actions of a rank of the random workload. Runs in the main fiber of each rank.
//
// A group posts more receives than it has messages, and cancels the rest at the end. Some are cancelled earlier, so
// that cancel meets every state of a receive. Some sends are begun before it is known what they send.
#include "apps/sim/traffic.hpp"

#include <canele/post.h>

#include <algorithm>
#include <string>

namespace canele::sim {
TrafficRank::TrafficRank(Environment& environment, const Plan& plan, Oracle& oracle, int rank, Dice dice,
                         TrafficOptions options)
    : environment_(environment),
      plan_(plan),
      oracle_(oracle),
      rank_(rank),
      dice_(dice),
      options_(options),
      calls_back_(dice_.under(3) == 0),
      ended_(
          [this](const std::string& what) { environment_.complain("rank " + std::to_string(rank_) + ": " + what); }) {
  for (const std::uint32_t number : plan.receives[static_cast<std::size_t>(rank)]) {
    GroupState state;
    state.group = &plan.groups[number];
    state.got.resize(static_cast<std::size_t>(environment.ranks()));
    groups_.push_back(std::move(state));
  }
}

void TrafficRank::open(canele_engine_t* engine) {
  sessions_.resize(plan_sessions);
  const auto make = [&](const char* label, unsigned flags, canele_session_t** session) {
    const int code = canele_session_open(engine, (label + options_.name).c_str(), flags, session);
    if (code != CANELE_OK && environment_.deaths() == 0)
      environment_.complain(std::string("no session: ") + canele_error_detail());
  };
  make("per-tag", 0, &sessions_[0]);
  make("across", CANELE_ORDER_ACROSS_TAGS, &sessions_[1]);
  make("sentinels", 0, &sentinel_session_);
  sentinels_.resize(static_cast<std::size_t>(environment_.ranks()));
  const auto talks = [&](int peer) {
    return std::any_of(groups_.begin(), groups_.end(), [&](const GroupState& state) {
      return std::any_of(state.group->messages.begin(), state.group->messages.end(),
                         [&](std::uint32_t id) { return plan_.messages[id].source == peer; });
    });
  };
  for (int peer = 0; peer < environment_.ranks(); ++peer) {
    if (peer == rank_ || !talks(peer)) continue;
    auto& sentinel = sentinels_[static_cast<std::size_t>(peer)];
    sentinel = std::make_unique<Sentinel>();
    canele_irecv(sentinel_session_, peer, 1, CANELE_TAG_EXACT, nullptr, 0, &sentinel->request);
  }
}

void TrafficRank::run(canele_engine_t* engine) {
  engine_ = engine;
  if (options_.begins_after_ns > 0) environment_.pause_for(options_.begins_after_ns);
  late_until_ = environment_.now_ns() + options_.late_by_ns;
  open(engine);
  while (!finished()) {
    act();
    if (!environment_.has_worker() || dice_.under(8) == 0) canele_progress(engine_);
    check();
  }
  close();
  unexpected_ = counter(engine_, "unexpected_messages");
}

bool TrafficRank::finished() const {
  return next_send_ == plan_.sends[static_cast<std::size_t>(rank_)].size() && sends_.empty() &&
         std::all_of(groups_.begin(), groups_.end(), [](const GroupState& state) { return state.done; });
}

void TrafficRank::act() {
  std::vector<GroupState*> open;
  for (GroupState& state : groups_) {
    const bool may_receive =
        !state.done && !is_late() && static_cast<int>(state.posted.size()) < options_.inflight_limit;
    if (may_receive) open.push_back(&state);
  }
  const int sends_at_once = options_.sends_at_once != 0 ? options_.sends_at_once : options_.inflight_limit;
  const bool may_send = next_send_ < plan_.sends[static_cast<std::size_t>(rank_)].size() &&
                        static_cast<int>(sends_.size()) < sends_at_once;
  const std::uint64_t what = dice_.under(10);
  if (what < 4 && may_send) return post_send();
  if (may_send && begun_ == nullptr && dice_.under(8) == 0) return begin_ahead();
  if (what < 8 && !open.empty()) return post_receive(*open[dice_.under(open.size())]);
  if (what == 8 && !open.empty()) return probe(*open[dice_.under(open.size())]);
  if (!open.empty() && dice_.under(8) == 0) return cancel_one(*open[dice_.under(open.size())]);
  if (dice_.under(4) == 0) return environment_.pause_for(dice_.under(50'000));  // the rank computes
  if (may_send || !open.empty()) return;
  if (is_late()) return environment_.pause_for(1 + dice_.under(100'000));
  wait();
}

void TrafficRank::post_send() {
  const PlannedMessage& message = plan_.messages[plan_.sends[static_cast<std::size_t>(rank_)][next_send_++]];
  const bool was_begun = begun_ != nullptr && message.multicast == 0;
  auto send = was_begun ? std::move(begun_) : std::make_unique<Send>(dice_.next());
  send->message = &message;
  send->hopeless.push_back(is_lost(message.destination));
  send->bytes = payload_of(message, name_of(plan_, message, environment_.life(rank_)));
  canele_session_t* const session = sessions_[static_cast<std::size_t>(message.session)];
  environment_.give_to_device(rank_, send->bytes);
  if (!was_begun && calls_back_ && dice_.under(2) == 0) send->end_by_callback();
  if (message.multicast != 0) return post_multicast(std::move(send), session);
  if (message.priority == 0 && !message.synchronous && dice_.under(2) == 0) {
    canele_isend(session, message.destination, message.tag, send->bytes.data(), message.size, &send->request);
    sends_.push_back(std::move(send));
    return;
  }
  const canele_data_t data = canele_data_contiguous(send->bytes.data(), message.size);
  canele_send_options_t options{};
  options.struct_size = sizeof options;
  options.priority = message.priority;
  options.flags = message.synchronous ? CANELE_SEND_SYNCHRONOUS : 0;
  const int code = canele_isend_data(session, message.destination, message.tag, &data, &options, &send->request);
  if (code != CANELE_OK) environment_.complain(std::string("canele_isend_data: ") + canele_error_detail());
  if (!send->ends_by_callback() && dice_.under(4) == 0)
    canele_send_set_priority(&send->request, message.priority + 1);  // it may have been sent
  sends_.push_back(std::move(send));
}

/// Begins the request of a later send, before it is known which.
void TrafficRank::begin_ahead() {
  begun_ = std::make_unique<Send>(dice_.next());
  if (calls_back_ && dice_.under(2) == 0) begun_->end_by_callback();
  if (canele_request_begin(engine_, &begun_->request) != CANELE_OK)
    environment_.complain(std::string("canele_request_begin: ") + canele_error_detail());
}

/// Ends the begun request that no send has used.
void TrafficRank::complete_begun() {
  if (begun_ == nullptr) return;
  if (begun_->done()) environment_.complain("a begun request has ended by itself");
  canele_request_complete(&begun_->request, CANELE_ECANCELED);
  while (!begun_->done()) canele_progress(engine_);  // its callback is run by a call
  if (begun_->status().error != CANELE_ECANCELED) environment_.complain("a begun request has another outcome");
  ended_.add(std::move(begun_));
}

void TrafficRank::post_multicast(std::unique_ptr<Send> send, canele_session_t* session) {
  const PlannedMulticast& multicast = plan_.multicasts[send->message->multicast - 1];
  std::vector<int> destinations;
  std::vector<std::int32_t> priorities;
  for (std::uint32_t i = 0; i < multicast.count; ++i) {
    const PlannedMessage& message = plan_.messages[multicast.first + i];
    destinations.push_back(message.destination);
    priorities.push_back(message.priority);
    if (i > 0) send->hopeless.push_back(is_lost(message.destination));
  }
  next_send_ += multicast.count - 1;
  send->outcomes.assign(multicast.count, 1);
  const canele_data_t data = canele_data_contiguous(send->bytes.data(), send->message->size);
  canele_multicast_options_t options{};
  options.struct_size = sizeof options;
  // Some multicasts have no options that prevent the fast path.
  const bool alike = std::all_of(priorities.begin(), priorities.end(), [&](int one) { return one == priorities[0]; });
  options.priority = priorities[0];
  options.priorities = alike ? nullptr : priorities.data();
  options.shape = multicast.shape;
  const std::size_t header = dice_.under(64);
  options.header = header < 16 ? 0 : std::min<std::size_t>(send->message->size, header);
  options.outcomes = send->outcomes.data();
  const int code = canele_imulticast(session, destinations.data(), destinations.size(), send->message->tag, &data,
                                     &options, &send->request);
  if (code != CANELE_OK) environment_.complain(std::string("canele_imulticast: ") + canele_error_detail());
  sends_.push_back(std::move(send));
}

void TrafficRank::prepare(Receive& receive, std::size_t room) {
  receive.room = room;
  receive.bytes = guarded_buffer(room);
  environment_.give_to_device(rank_, receive.bytes);
}

void TrafficRank::post_receive(GroupState& state) {
  const Group& group = *state.group;
  auto receive = std::make_unique<Receive>(dice_.next());
  const bool exact = group.large && dice_.under(4) != 0;
  const bool any_source = !exact && (!group.one_source || dice_.under(2) == 0);
  std::uint64_t mask = group_mask;
  if (group.session == 1) {
    mask = CANELE_TAG_ANY;
  } else if (group.one_tag && (exact || dice_.under(2) == 0)) {
    mask = CANELE_TAG_EXACT;
  }
  const int source = any_source ? CANELE_ANY_SOURCE : group.source;
  canele_session_t* const session = sessions_[static_cast<std::size_t>(group.session)];
  receive->posted = ++posts_;
  receive->unbound = !exact && dice_.under(6) == 0;
  if (receive->unbound) {
    canele_irecv_late(session, source, group.tag, mask, &receive->request);
  } else {
    std::size_t longest = 0;
    for (const std::uint32_t id : group.messages) longest = std::max(longest, plan_.messages[id].size);
    prepare(*receive, dice_.under(20) == 0 ? std::max<std::size_t>(4, dice_.under(longest + 1)) : longest);
    if (calls_back_ && dice_.under(2) == 0) receive->end_by_callback();
    canele_irecv(session, source, group.tag, mask, receive->bytes.data(), receive->room, &receive->request);
  }
  state.posted.push_back(std::move(receive));
}

/// Receives a message that has come without a receive.
void TrafficRank::probe(GroupState& state) {
  const Group& group = *state.group;
  auto receive = std::make_unique<Receive>(dice_.next());
  canele_status_t status{};
  int found = 0;
  const std::uint64_t mask = group.session == 1 ? CANELE_TAG_ANY : group_mask;
  receive->posted = ++posts_;
  canele_improbe(sessions_[static_cast<std::size_t>(group.session)], CANELE_ANY_SOURCE, group.tag, mask, &found,
                 &receive->request, &status);
  if (found == 0) return;
  receive->unbound = true;
  state.posted.push_back(std::move(receive));
}

/// Cancels a receive whose message may come, or may be arriving. Another receive will be posted.
void TrafficRank::cancel_one(GroupState& state) {
  if (state.posted.empty()) return;
  Receive& receive = *state.posted[dice_.under(state.posted.size())];
  if (!receive.done() && !std::exchange(receive.cancelled, true)) canele_cancel(&receive.request);
}

void TrafficRank::bind_if_due(Receive& receive) {
  canele_status_t envelope{};
  if (!receive.unbound || receive.bound || receive.done()) return;
  if (canele_receive_envelope(&receive.request, &envelope) != CANELE_OK) return;
  prepare(receive, envelope.length);
  const canele_data_t data = canele_data_contiguous(receive.bytes.data(), receive.room);
  receive.bound = true;
  canele_receive_bind(&receive.request, &data);
}

void TrafficRank::check_sends() {
  std::erase_if(sends_, [this](std::unique_ptr<Send>& send) {
    if (!send->done()) return false;
    canele_status_t status = send->status();
    for (std::size_t i = 0; i < send->hopeless.size(); ++i) {
      if (send->message->multicast != 0) status.error = send->outcomes[i];
      oracle_.sent(plan_.messages[send->message->id + i], status, send->hopeless[i]);
    }
    environment_.take_from_device(send->bytes);
    ended_.add(std::move(send));
    return true;
  });
}

void TrafficRank::check() {
  check_sends();
  check_sentinels();
  for (GroupState& state : groups_) {
    if (!state.done) check_group(state);
  }
}

void TrafficRank::check_sentinels() {
  for (std::size_t peer = 0; peer < sentinels_.size(); ++peer) {
    Sentinel* const sentinel = sentinels_[peer].get();
    if (sentinel == nullptr || sentinel->fired || !is_done(sentinel->request)) continue;
    sentinel->fired = true;
    if (!oracle_.may_fail(static_cast<int>(peer), rank_)) {
      environment_.complain("rank " + std::to_string(rank_) + " got an error for the loss of rank " +
                            std::to_string(peer) + ", which lives");
    }
  }
}

void TrafficRank::check_group(GroupState& state) {
  for (const auto& receive : state.posted) bind_if_due(*receive);
  std::erase_if(state.posted, [&](std::unique_ptr<Receive>& receive) {
    if (!receive->done()) return false;
    environment_.take_from_device(receive->bytes);
    finish_receive(state, *receive);
    ended_.add(std::move(receive));
    return true;
  });
  if (!satisfied(state)) return;
  for (const auto& receive : state.posted) {
    if (!receive->done() && !std::exchange(receive->cancelled, true)) canele_cancel(&receive->request);
  }
  state.done = state.posted.empty();
}

void TrafficRank::finish_receive(GroupState& state, const Receive& receive) {
  const canele_status_t status = receive.status();
  const bool got =
      oracle_.received(*state.group, status, receive.bytes, receive.room, receive.posted, receive.cancelled);
  if (got && status.source >= 0) ++state.got[static_cast<std::size_t>(status.source)];
}

/// Returns true if every message that can still come has come.
bool TrafficRank::satisfied(const GroupState& state) const {
  std::vector<int> expected(state.got.size());
  for (const std::uint32_t id : state.group->messages) ++expected[static_cast<std::size_t>(plan_.messages[id].source)];
  for (std::size_t source = 0; source < expected.size(); ++source) {
    const bool lost = is_lost(static_cast<int>(source)) || oracle_.distrusts(static_cast<int>(source), rank_);
    if (!lost && state.got[source] < expected[source]) return false;
  }
  return true;
}

void TrafficRank::wait() {
  constexpr std::uint64_t short_while_ns = 5000;  // no blocking wait ends for a header or a callback
  std::vector<canele_request_t*> all;
  for (const auto& send : sends_) {
    if (send->ends_by_callback()) return environment_.pause_for(short_while_ns);
    all.push_back(&send->request);
  }
  if (begun_ != nullptr && !begun_->ends_by_callback()) all.push_back(&begun_->request);
  for (const GroupState& state : groups_) {
    for (const auto& receive : state.posted) {
      if ((receive->unbound && !receive->bound) || receive->ends_by_callback()) {
        return environment_.pause_for(short_while_ns);
      }
      all.push_back(&receive->request);
    }
  }
  for (const auto& sentinel : sentinels_) {
    if (sentinel != nullptr && !sentinel->fired) all.push_back(&sentinel->request);
  }
  if (all.empty()) return environment_.pause_for(1000);
  std::size_t index = 0;
  canele_wait_any(all.size(), all.data(), &index, nullptr);
}

void TrafficRank::close() {
  for (const auto& sentinel : sentinels_) {
    if (sentinel == nullptr) continue;
    canele_cancel(&sentinel->request);
    canele_wait(&sentinel->request, nullptr);
  }
  complete_begun();
  ended_.close();
}

std::string TrafficRank::state() const {
  std::string text = "rank " + std::to_string(rank_) + ": " +
                     std::to_string(plan_.sends[static_cast<std::size_t>(rank_)].size() - next_send_) +
                     " sends not begun\n";
  for (const auto& send : sends_) {
    text += "  send of " + std::to_string(send->message->id) + " to rank " +
            std::to_string(send->message->destination) + ", " + std::to_string(send->message->size) + " bytes" +
            (send->message->synchronous ? ", synchronous" : "") + "\n";
  }
  for (const GroupState& state : groups_) {
    if (!state.done) text += state_of(state);
  }
  return text;
}

std::string TrafficRank::state_of(const GroupState& state) const {
  std::string text = "  group " + std::to_string(state.group - plan_.groups.data()) + ": " +
                     std::to_string(state.posted.size()) + " receives";
  std::vector<int> expected(state.got.size());
  for (const std::uint32_t id : state.group->messages) ++expected[static_cast<std::size_t>(plan_.messages[id].source)];
  for (std::size_t source = 0; source < expected.size(); ++source) {
    if (state.got[source] >= expected[source]) continue;
    text += "; rank " + std::to_string(source) + ": " + std::to_string(state.got[source]) + " of " +
            std::to_string(expected[source]) +
            (sentinels_[source] != nullptr && sentinels_[source]->fired ? " (lost)" : "");
  }
  return text + "\n";
}

}  // namespace canele::sim
