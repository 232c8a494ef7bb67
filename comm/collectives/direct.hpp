// SPDX-License-Identifier: BSD-3-Clause
//
// Direct: a collective that the calling thread carries out itself, and waits for.
//
// Who: api/, for a call that blocks.
// Threads: the one that calls; for one group one at a time. Runs (run.hpp) of the same group may be under way beside
// it. Surprise: no callback, no task, no lock and, but for long scratch memory, no allocation: it looks at its few
// messages
//     until one has ended, as a program would that waits for any of several. Who ends the group cannot cancel them; it
//     signals Group::ended, which is waited for beside them, and the thread cancels its receives itself.
//
//     Direct, kept by the group:   pending × steps │ transfers: request, step × most │ scratch
//                                                        ▲
//                                                  under_way: those that have not ended, in no order
//
// Rejected: this for schedules of any size (each look costs as much as there are messages under way: a Run is told).
#pragma once

#include <canele/canele.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/collectives/group.hpp"
#include "comm/collectives/schedule.hpp"
#include "comm/collectives/steps.hpp"

namespace canele::comm::collectives {

class Direct {
 public:
  static constexpr std::uint32_t most_messages = 24;
  static constexpr std::uint64_t kept_scratch = 256 << 10;

  /// Few enough messages.
  static bool suits(const Schedule& schedule);

  explicit Direct(Group& group);

  /// Blocks until all steps of this rank have ended. CANELE_OK, or why the group is over; CANELE_ENOMEM: no memory for
  /// scratch, nothing has been done.
  Ending carry_out(const Schedule& schedule, const Work& work);

 private:
  struct Transfer {
    canele_request_t request{};
    StepId step = no_step;
  };

  bool make_room(const Schedule& schedule);
  void begin_all();
  void begin(StepId id);
  void begin_message(StepId id);
  void ended(StepId id);
  bool look();
  void message_ended(StepId id, Ending ending);
  void send_ended();
  void failed(Ending ending);
  void await_one();
  void cancel_receives();

  Group& group_;
  std::array<Transfer, most_messages> transfers_{};
  std::array<std::uint8_t, most_messages> free_{}, under_way_{};  ///< which transfers
  std::vector<std::uint32_t> pending_;                            ///< by step: needs that have not ended
  struct Freeing {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte[], Freeing> scratch_;
  std::uint64_t scratch_bytes_ = 0;

  // Of the call.
  const Schedule* schedule_ = nullptr;
  const Work* work_ = nullptr;
  std::uint64_t number_ = 0;
  std::uint32_t left_ = 0, under_way_count_ = 0, free_count_ = 0, sends_ = 0;
  std::vector<StepId> waiting_;  ///< sends that the window keeps back, the next one first
  bool failed_ = false, cancelled_ = false, ends_the_group_ = false;
};

}  // namespace canele::comm::collectives
