// SPDX-License-Identifier: BSD-3-Clause
//
// BlocksCache: the schedules of the last few calls whose blocks have lengths or offsets of their own. A program calls
// with the same blocks again and again, and to compare them takes a fraction of the time to build a schedule.
//
// Used by ScheduleCache, for one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/collectives/algorithms/algorithms.hpp"
#include "comm/collectives/algorithms/schedule.hpp"

namespace canele::comm::collectives {

class BlocksCache {
 public:
  static constexpr std::size_t entries = 4;
  static constexpr int most_ranks = 1024;  ///< of a call that is kept

  /// Returns true if a block of the call has a length or an offset of its own.
  static bool is_for(const Call& call);
  /// Returns the schedule of an earlier call with equal arguments; nullptr if none is kept. Valid until the next
  /// keep().
  const std::shared_ptr<const Schedule>* find(const Call& call, const Choice& asked);
  /// Keeps a schedule in place of the one that was not used for longest. Returns the copy that is kept, which is valid
  /// until the next call. std::bad_alloc: nothing has changed.
  const std::shared_ptr<const Schedule>& keep(const Call& call, const Choice& asked,
                                              std::shared_ptr<const Schedule> schedule);

 private:
  struct Entry {
    Call call;  ///< its blocks name the numbers
    Choice asked;
    std::vector<std::size_t> numbers;  ///< lengths and offsets of the input, then of the output
    std::shared_ptr<const Schedule> schedule;
    std::uint64_t used = 0;  ///< when it was found last
  };
  std::array<Entry, entries> kept_;
  std::shared_ptr<const Schedule> too_many_;  ///< the last schedule for more ranks than are kept
  std::uint64_t uses_ = 0;
};

}  // namespace canele::comm::collectives
