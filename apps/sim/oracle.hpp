// SPDX-License-Identifier: BSD-3-Clause
//
// Oracle: what must hold of every message of a plan, whatever happens to the job.
//
// The workloads report to the oracle, and it complains to their environment. One thread (fibers). It needs no model of
// the engine. Consider two messages that no receive which took one of them can tell apart. The message that was sent
// earlier must have gone to the receive that was posted earlier. This is all that is visible of MPI's matching from
// outside, and it does not depend on the times of arrival. If a rank has died and returned, no process may receive from
// two lives of it, nor may two lives of it receive from one process.
#pragma once

#include <canele/canele.h>

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "apps/sim/environment.hpp"
#include "apps/sim/plan.hpp"

namespace canele::sim {

using drivers::sim::Counted;
using drivers::sim::CountedMap;

class Oracle {
 public:
  Oracle(Environment& environment, const Plan& plan);

  /// Checks a receive of `group` that has ended. `bytes`: its whole buffer, with guard bytes behind `room`
  /// (guarded_buffer()). `posted`: number of its post at that rank. Returns true if a message was received.
  bool received(const Group& group, const canele_status_t& status, std::span<const std::byte> bytes, std::size_t room,
                std::uint64_t posted, bool asked_to_cancel);
  /// Checks a send that has ended. `hopeless`: its receiver was known to be lost when it was posted.
  void sent(const PlannedMessage& message, const canele_status_t& status, bool hopeless);
  /// Allows two ranks to lose each other: their messages may end with CANELE_EPEER.
  void forgive(int a, int b) { forgiven_.insert({std::min(a, b), std::max(a, b)}); }
  bool may_fail(int a, int b) const;
  /// Records that packets between two ranks were damaged: their messages cannot be checked any more.
  void distrust(int a, int b) { distrusted_.insert({std::min(a, b), std::max(a, b)}); }
  bool distrusts(int a, int b) const { return distrusted_.contains({std::min(a, b), std::max(a, b)}); }
  /// Checks at the end that everything was received, in order. `at`: the rank whose receives were reported, -1: all
  /// were.
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
  /// Returns how often the message of that name was seen. Each life of a rank has names of its own.
  int& count(std::vector<int>& times, std::uint32_t name) const;

  Environment& environment_;
  const Plan& plan_;
  std::vector<int> times_received_, times_sent_;  ///< by name
  std::vector<std::size_t> place_;                ///< index of each message among those of its source
  CountedMap<std::tuple<std::uint32_t, int, std::uint64_t, std::size_t>, int> small_received_;
  /// By group, lives of source and receiver, source and tag (0 if all tags are ordered together).
  CountedMap<std::tuple<std::uint32_t, int, int, int, std::uint64_t>, std::vector<Taken, Counted<Taken>>> taken_;
  /// By process (rank, life) and peer: the one life of the peer that it has received from, or that has received from
  /// it.
  CountedMap<std::tuple<int, int, int>, int> heard_, heard_by_;
  std::set<std::pair<int, int>> forgiven_, distrusted_;
  std::set<std::pair<int, int>> dropped_;  ///< pairs (source, destination): a message was lost for lack of memory
};

}  // namespace canele::sim
