// SPDX-License-Identifier: BSD-3-Clause
//
// Traffic: the workload that does everything at random: sends and receives of a plan, with wildcards, late buffers,
// probes, cancels, priorities, short buffers, blocking and polling.
//
// Who: canele-sim, tests/process/stress. Threads: the main fiber, or thread, of each rank.
// Surprise: each rank also posts a receive from every other one that nothing will ever match: it ends when that rank
//      dies, and only then it is sure that nothing more comes from there.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/sim/ground.hpp"
#include "apps/sim/oracle.hpp"
#include "apps/sim/plan.hpp"
#include "apps/sim/ticket.hpp"

namespace canele::sim {

struct TrafficOptions {
  int window = 8;                     ///< of a rank's sends, and of a group's receives
  int sends_at_once = 0;              ///< instead, for sends; 0: as `window` says
  std::uint64_t begins_after_ns = 0;  ///< until then it has not called the library but to start
  std::uint64_t late_by_ns = 0;       ///< no receive is posted for so long
  std::string name;                   ///< of its sessions, where an engine has several workloads
};

/// What one rank does.
class TrafficRank {
 public:
  TrafficRank(Ground& ground, const Plan& plan, Oracle& oracle, int rank, Dice dice, TrafficOptions options);
  void run(canele_engine_t* engine);
  /// What it waits for, for people.
  std::string state() const;
  /// Messages that came before their receive.
  std::uint64_t unexpected() const { return unexpected_; }

 private:
  struct Send : Ticket {
    using Ticket::Ticket;
    const PlannedMessage* message = nullptr;  ///< of a multicast the first
    std::vector<bool> hopeless;               ///< posted after the receiver was known to be lost; of each
    std::vector<int> outcomes;                ///< of a multicast, of each
  };
  struct Receive : Ticket {
    using Ticket::Ticket;
    std::uint64_t posted = 0;
    std::size_t room = 0;
    bool late = false, bound = false, cancelled = false;
  };
  struct GroupState {
    const Group* group = nullptr;
    std::vector<std::unique_ptr<Receive>> posted;
    std::vector<int> got;  ///< messages, by source
    bool over = false;
  };
  struct Sentinel {
    canele_request_t request{};
    bool fired = false;
  };

  void open(canele_engine_t* engine);
  void act();
  bool finished() const;
  void post_send();
  void post_cast(std::unique_ptr<Send> send, canele_session_t* session);
  void post_receive(GroupState& state);
  void probe(GroupState& state);
  void cancel_one(GroupState& state);
  void prepare(Receive& receive, std::size_t room);
  void look();
  void look_at_sends();
  void look_at_group(GroupState& state);
  void look_at_sentinels();
  bool satisfied(const GroupState& state) const;
  bool is_lost(int peer) const {
    const auto& sentinel = sentinels_[static_cast<std::size_t>(peer)];
    return sentinel != nullptr && sentinel->fired;
  }
  std::string state_of(const GroupState& state) const;
  void finish_receive(GroupState& state, const Receive& receive);
  bool is_late() const { return ground_.now_ns() < late_until_; }
  void bind_if_due(Receive& receive);
  void wait();
  void close();

  Ground& ground_;
  const Plan& plan_;
  Oracle& oracle_;
  const int rank_;
  Dice dice_;
  const TrafficOptions options_;
  const bool calls_back_;  ///< some of its requests end by a callback
  Graveyard graveyard_;
  canele_engine_t* engine_ = nullptr;
  std::vector<canele_session_t*> sessions_;
  canele_session_t* sentinel_session_ = nullptr;
  std::vector<std::unique_ptr<Sentinel>> sentinels_;  ///< by rank
  std::vector<std::unique_ptr<Send>> sends_;
  std::size_t next_send_ = 0;
  std::vector<GroupState> groups_;
  std::uint64_t posts_ = 0, late_until_ = 0, unexpected_ = 0;
};

}  // namespace canele::sim
