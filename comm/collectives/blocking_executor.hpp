// SPDX-License-Identifier: BSD-3-Clause
//
// BlockingExecutor: the calling thread carries out the collective itself and waits for it.
//
// Used by api/ for calls that block. One thread at a time in a group; an AsyncExecutor of the same group may be in
// progress beside it.
//
// No callback, no task and, except for long scratch memory, no allocation. One hold of the engine's lock begins all
// steps that need nothing, by the fast paths of the engine, and polls for the messages on their way. After that the
// thread polls its few messages until one has ended, like a program that waits for any of several requests.
//
// A thread that notes a failure cannot cancel these receives. It signals Group::ended, on which this thread waits as
// well. If its collective has failed, this thread then cancels its receives itself.
//
//     BlockingExecutor, kept by the group:   pending × steps │ transfers: request, step × most │ scratch
//                                                                  ▲
//                                                            in_flight: those that have not ended, in no order
//
//     carry_out ─▶ begins with one message, and it ends soon? ─yes─▶ the other steps in their order, done
//                         └─no─▶ begin_all ─▶ ready steps ─▶ await_some ─┐
//                                                  ▲─────────────────────┘
//
// Rejected: this executor for schedules of any size. Each poll costs as much as there are messages in progress, whereas
// an AsyncExecutor is notified.
// Rejected: to let a poll take all packets there are. A root, or the leaves of a gather, may run ahead. The messages of
// their later calls would then be stored as unexpected, and copied twice.
#pragma once

#include <canele/canele.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/collectives/algorithms/schedule.hpp"
#include "comm/collectives/group.hpp"
#include "comm/collectives/steps.hpp"
#include "comm/protocol/receive_eager.hpp"
#include "comm/rendezvous/buffered.hpp"

namespace canele::comm::collectives {

class BlockingExecutor {
 public:
  static constexpr std::uint32_t most_messages = 64;
  static constexpr std::uint64_t kept_scratch = 256 << 10;

  /// Returns true if the schedule has few enough messages.
  static bool suits(const Schedule& schedule) { return schedule.messages() <= most_messages; }

  explicit BlockingExecutor(Group& group);

  /// Not carried out at all: there is no memory for scratch. Distinct from a collective that has failed for lack of
  /// memory on one rank.
  static constexpr Ending no_scratch{CANELE_ENOMEM, -1};

  /// Blocks until all steps of this rank have ended. Returns CANELE_OK, or why the collective has failed, or
  /// `no_scratch`.
  Ending carry_out(const Schedule& schedule, const Work& work);

 private:
  struct Transfer {
    canele_request_t request{};
    StepId step = no_step;
  };

  bool has_room(const Schedule& schedule) const {
    return schedule.scratch_bytes() <= scratch_bytes_ && schedule.steps().size() <= step_room_;
  }
  [[gnu::cold]] bool make_room(const Schedule& schedule);
  bool one_message_ends();
  bool arrives_soon(StepId id, const Step& step);
  Ending carry_out_steps(StepId next);
  void begin_all();
  void begin_from(StepId next);
  bool begin_in_one_hold();
  receive_path::Accepted post_locked(const Step& step, Request& request) const CANELE_UNDER_LOCK;
  void begin(StepId id);
  void send(StepId id, const Step& step);
  void post(StepId id, const Step& step);
  bool sends_fast_locked(const Step& step) const CANELE_UNDER_LOCK;
  bool sends_fast(const Step& step) const;
  bool few_buffered();
  bool next_is_sent(const Range& range) const;
  bool sends_buffered(const Step& step);
  void mark_operands(bool are_operands);
  void forget_copy();
  void ended(const Step& step);
  void collect_ended();
  void message_ended(const Step& step, const Request& message);
  [[gnu::cold]] void message_failed(const Step& step, Ending ending);
  void send_ended();
  void await_some();
  bool some_ended() const;
  bool spin(Engine::Spin how) CANELE_UNDER_LOCK;
  bool some_end_by_tasks();
  bool some_end_soon();
  bool some_end_in_turns();
  void await_one();
  bool given_up() const { return group_.failed(number_); }
  [[gnu::cold]] void propagate();
  void cancel_receives();
  std::uint64_t tag(const Step& step) const { return tag_of(step, number_); }

  Group& group_;
  std::array<Transfer, most_messages> transfers_{};
  std::array<std::uint8_t, most_messages> free_{}, in_flight_{};  ///< indexes of transfers
  std::unique_ptr<std::uint32_t[]> pending_;                      ///< by step: needs that have not ended
  std::unique_ptr<StepId[]> ready_;  ///< steps that need nothing any more, in the order of execution
  std::size_t step_room_ = 0;        ///< of both arrays
  struct Freeing {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte[], Freeing> scratch_;
  std::uint64_t scratch_bytes_ = 0;

  // State of the current call.
  const Schedule* schedule_ = nullptr;
  const Place* place_ = nullptr;
  std::uint64_t number_ = 0;
  std::uint32_t left_ = 0, next_ready_ = 0, ready_count_ = 0;
  bool are_operands_ = false;  ///< the requests say so
  std::uint32_t in_flight_count_ = 0, free_count_ = 0, sends_ = 0;
  std::vector<StepId> waiting_;  ///< sends beyond inflight_limit, the next one first
  bool failed_ = false, cancelled_ = false;
  bool notified_ = false;  ///< the receivers of sends that are left out
  Group::News news_;
  bool has_spun_ = false;           ///< in vain, in begin_in_one_hold()
  buffered::Copy* copy_ = nullptr;  ///< of the last buffered send, reused for other receivers of the same range
  Range copied_;
};

}  // namespace canele::comm::collectives
