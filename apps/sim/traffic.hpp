// SPDX-License-Identifier: BSD-3-Clause
//
// Traffic: the workload that does everything at random. It has sends and receives of a plan, with wildcards, unbound
// receives, probes, cancels, priorities, short buffers, blocking and polling.
//
// Used by canele-sim and tests/process/stress. Threads: the main fiber, or thread, of each rank. Each rank also posts a
// receive from every other rank that no message will ever match. It ends when that rank dies, and only then it is
// certain that no more messages come from there.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/sim/environment.hpp"
#include "apps/sim/oracle.hpp"
#include "apps/sim/plan.hpp"
#include "apps/sim/tracked_request.hpp"

namespace canele::sim {

struct TrafficOptions {
  int inflight_limit = 8;             ///< of a rank's sends, and of a group's receives.
  int sends_at_once = 0;              ///< a separate limit for sends; 0: as `inflight_limit`.
  std::uint64_t begins_after_ns = 0;  ///< until then the rank makes no call except to start.
  std::uint64_t late_by_ns = 0;       ///< no receive is posted for this time.
  std::string name;                   ///< of its sessions, if an engine has several workloads.
};

/// The workload of one rank.
class TrafficRank {
 public:
  TrafficRank(Environment& environment, const Plan& plan, Oracle& oracle, int rank, Dice dice, TrafficOptions options);
  void run(canele_engine_t* engine);
  /// Returns what the rank waits for, as text.
  std::string state() const;
  /// Returns the number of messages that came before their receive.
  std::uint64_t unexpected() const { return unexpected_; }

 private:
  struct Send : TrackedRequest {
    using TrackedRequest::TrackedRequest;
    const PlannedMessage* message = nullptr;  ///< of a multicast the first.
    std::vector<bool> hopeless;  ///< by destination: the send was posted after the receiver was known to be lost.
    std::vector<int> outcomes;   ///< of a multicast, by destination.
  };
  struct Receive : TrackedRequest {
    using TrackedRequest::TrackedRequest;
    std::uint64_t posted = 0;
    std::size_t room = 0;
    bool unbound = false, bound = false, cancelled = false;
  };
  struct GroupState {
    const Group* group = nullptr;
    std::vector<std::unique_ptr<Receive>> posted;
    std::vector<int> got;  ///< messages, by source
    bool done = false;
  };
  struct Sentinel {
    canele_request_t request{};
    bool fired = false;
  };

  void open(canele_engine_t* engine);
  void act();
  bool finished() const;
  void post_send();
  void begin_ahead();
  void complete_begun();
  void post_multicast(std::unique_ptr<Send> send, canele_session_t* session);
  void post_receive(GroupState& state);
  void probe(GroupState& state);
  void cancel_one(GroupState& state);
  void prepare(Receive& receive, std::size_t room);
  void check();
  void check_sends();
  void check_group(GroupState& state);
  void check_sentinels();
  bool satisfied(const GroupState& state) const;
  bool is_lost(int peer) const {
    const auto& sentinel = sentinels_[static_cast<std::size_t>(peer)];
    return sentinel != nullptr && sentinel->fired;
  }
  std::string state_of(const GroupState& state) const;
  void finish_receive(GroupState& state, const Receive& receive);
  bool is_late() const { return environment_.now_ns() < late_until_; }
  void bind_if_due(Receive& receive);
  void wait();
  void close();

  Environment& environment_;
  const Plan& plan_;
  Oracle& oracle_;
  const int rank_;
  Dice dice_;
  const TrafficOptions options_;
  const bool calls_back_;  ///< some of its requests end by a callback
  EndedRequests ended_;
  canele_engine_t* engine_ = nullptr;
  std::vector<canele_session_t*> sessions_;
  canele_session_t* sentinel_session_ = nullptr;
  std::vector<std::unique_ptr<Sentinel>> sentinels_;  ///< by rank
  std::vector<std::unique_ptr<Send>> sends_;
  std::unique_ptr<Send> begun_;  ///< its request is pending, and a later send will use it; nullptr: there is none
  std::size_t next_send_ = 0;
  std::vector<GroupState> groups_;
  std::uint64_t posts_ = 0, late_until_ = 0, unexpected_ = 0;
};

}  // namespace canele::sim
