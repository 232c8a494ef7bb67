// SPDX-License-Identifier: BSD-3-Clause
//
// Oracle: what must hold of every message of a plan, whatever befalls the job.
//
// Who: the workloads report, the oracle complains to the ground they stand on. Threads: one (fibers).
// Surprise: it needs no model of the engine. Two messages that cannot be told apart by any receive that took one of
//      them must have been taken in the order of sending by receives in the order of posting: that is all of MPI's
//      matching that can be seen from outside, and it does not depend on when what arrived.
//      Where a rank has died and come back, no process may hear two lives of it, nor be heard by two.
#pragma once

#include <canele/canele.h>

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "apps/sim/ground.hpp"
#include "apps/sim/plan.hpp"

namespace canele::sim {

using drivers::sim::Counted;
using drivers::sim::CountedMap;

class Oracle {
 public:
  Oracle(Ground& ground, const Plan& plan);

  /// A receive of `group` is over. `bytes`: its whole buffer, with guard bytes behind `room` (guarded_buffer()).
  /// `posted`: number of its post at that rank. Returns true if a message was received.
  bool received(const Group& group, const canele_status_t& status, std::span<const std::byte> bytes, std::size_t room,
                std::uint64_t posted, bool asked_to_cancel);
  /// A send is over. `hopeless`: its receiver was known to be lost when it was posted.
  void sent(const PlannedMessage& message, const canele_status_t& status, bool hopeless);
  /// Two ranks may lose each other: their messages may end with CANELE_EPEER.
  void forgive(int a, int b) { forgiven_.insert({std::min(a, b), std::max(a, b)}); }
  bool may_fail(int a, int b) const;
  /// Packets between them were damaged: what they tell each other cannot be judged any more.
  void distrust(int a, int b) { distrusted_.insert({std::min(a, b), std::max(a, b)}); }
  bool distrusts(int a, int b) const { return distrusted_.contains({std::min(a, b), std::max(a, b)}); }
  /// After the end: everything was received, in order. `at`: the rank whose receives were reported, -1: all were.
  void final_check(int at = -1);

  std::uint64_t completed = 0;
  bool lacks_memory = false;  ///< receives may end with CANELE_ENOMEM

 private:
  struct Taken {
    std::uint32_t id;
    std::uint64_t posted;
  };
  void check_bytes(const PlannedMessage& message, std::uint32_t name, std::span<const std::byte> bytes,
                   std::size_t room);
  const PlannedMessage* copy_for(const PlannedMessage& message, int destination, std::uint32_t* name) const;
  const PlannedMessage* identify(const Group& group, const canele_status_t& status, std::span<const std::byte> bytes,
                                 std::size_t room, std::uint32_t* name);
  void check_lives(const PlannedMessage& message, int sender_life);
  void check_order();
  /// How often the message of that name was seen; names grow with the lives.
  int& count(std::vector<int>& times, std::uint32_t name) const;

  Ground& ground_;
  const Plan& plan_;
  std::vector<int> times_received_, times_sent_;  ///< by name
  std::vector<std::size_t> place_;                ///< of each message among those of its source
  CountedMap<std::tuple<std::uint32_t, int, std::uint64_t, std::size_t>, int> small_received_;
  /// By group, lives of source and receiver, source and tag (0 where all tags are in order).
  CountedMap<std::tuple<std::uint32_t, int, int, int, std::uint64_t>, std::vector<Taken, Counted<Taken>>> taken_;
  /// The one process of the third that a process (rank, life) has heard, or was heard by.
  CountedMap<std::tuple<int, int, int>, int> heard_, heard_by_;
  std::set<std::pair<int, int>> forgiven_, distrusted_;
  std::set<std::pair<int, int>> dropped_;  ///< of the first to the second a message was lost for want of memory
};

}  // namespace canele::sim
