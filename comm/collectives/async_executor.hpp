// SPDX-License-Identifier: BSD-3-Clause
//
// Run: executes one schedule asynchronously, for one request of the user.
//
// api/ starts a run. The completion callbacks of its messages then continue it.
//
// Threading: several threads may work on a run at the same time: the calling thread and any that makes progress. Each
// brings one event, performs the steps that this event makes ready, and then those that these make ready. It keeps them
// on a list of its own (Worklist).
//
// Ownership: a run has no owner and frees itself after its last event. `left` counts the steps that have not ended. It
// also counts one for each caller that needs the run to stay: the call that still posts, and the thread that ends the
// group.
//
//     one allocation:   Run │ StepState × steps │ Transfer × messages │ waiting × messages │ scratch
//                              pending: needs        request ─event─▶ callback     sends that the
//                              that have not           ▲                │          window keeps back
//                              ended                   └── run, step ───┘
//
//     an event ─▶ its step has ended ─▶ pending of each step after it − 1 ─▶ 0: begin it: post, or do it here and now
//                                                                              └─ of a split tree: may be held
//
//     The widest levels of a split tree (split_policy.hpp) belong to the computing threads of the program. On the way
//     to the root they come first: the call stays until they have ended, or took too long, and holds the other levels
//     meanwhile. On the way from the root they come last, and are held. Correctness relies on neither: held steps have
//     a deadline, a thread that stays gives up, and ranks need not agree.
//
// Rejected: a thread or a lock for each run. Two events of one run are independent of each other, unless a step says
// otherwise.
// Rejected: to begin a step inside the loop that ends another. A chain of local steps would be a recursion.
#pragma once

#include <canele/canele.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "comm/collectives/algorithms/schedule.hpp"
#include "comm/collectives/group.hpp"
#include "comm/collectives/split_policy.hpp"
#include "comm/collectives/steps.hpp"
#include "comm/engine/deferred_work.hpp"
#include "comm/state/request.hpp"

namespace canele::comm::collectives {

/// Starts the next collective of the group. `user` has been prepared as a send of the group's session, and is completed
/// without further calls. Returns false if there is no memory; nothing has been done then. `course`: decides how the
/// tree is split; nullptr: not at all.
bool start(Group& group, std::shared_ptr<const Schedule> schedule, const Work& work, Request& user,
           Course* course = nullptr);

struct StepState {
  std::atomic<std::uint32_t> pending{0};
  StepId next = no_step;       ///< in a Worklist, or in the list of held steps.
  std::uint32_t transfer = 0;  ///< of a send or a receive: index of its Transfer
  bool admitted = false;       ///< of a send: the window has admitted it
};

struct Transfer {
  canele_request_t request;
  Run* run;
  StepId step;
  std::atomic<bool> cancellable;  ///< a receive that has been posted
};

struct Run {
  struct Op : CallOp {
    Run* run = nullptr;
  };

  Run(std::shared_ptr<Group> in, std::shared_ptr<const Schedule> what, const Work& on, Request& whose);

  std::span<const Step> steps() const { return schedule->steps(); }
  Place place() const { return {work, scratch}; }

  /// Keeps the run alive. Returns false if it has ended. Otherwise release(1) must follow, directly or by another call.
  bool hold();
  /// Called when the group has failed: cancels receives, and skips the held steps.
  void give_up_and_release();
  /// Counts `ended` steps as done. The run may be freed afterwards.
  void release(std::uint32_t ended);
  bool is_late(const Step& step) const { return step.level != 0 && step.level <= split; }
  /// Holds the step until let_go(). Returns false if the step need not be held, or let_go() has been called already.
  bool holds_back(StepId id);
  /// Returns all held steps, in the order in which they became ready. From now on no step is held.
  StepId let_go();

  const std::shared_ptr<Group> group;
  const std::shared_ptr<const Schedule> schedule;
  const Work work;
  Request& user;
  const std::uint64_t number;            ///< number of this collective in its group
  Run *next = nullptr, *prev = nullptr;  ///< in the group's list; under the engine's lock

  StepState* states = nullptr;
  Transfer* transfers = nullptr;
  std::uint32_t transfer_count = 0;
  std::byte* scratch = nullptr;

  std::atomic<std::uint32_t> left;
  std::atomic<bool> failed{false};  ///< a step has not been done
  std::atomic<int> owners{2};       ///< the submitter of `ends`, and `ends` itself: the last one frees the run

  // The window: all of it under `window_taken`, held for a few instructions.
  std::atomic<bool> window_taken{false};
  std::uint32_t under_way = 0, waiting_count = 0;
  StepId* waiting = nullptr;  ///< a heap, the first step on top

  // For split trees.
  static constexpr StepId none_held = no_step - 1;
  std::uint32_t split = 0;               ///< levels for the computing threads of the program; 0: none.
  std::atomic<std::uint32_t> late_left;  ///< messages of these levels that have not ended
  std::atomic<StepId> held{none_held};   ///< the last held step; none_held: steps are not held, or not any more
  Course* course = nullptr;
  struct Late final : PutOff {
    Run* run = nullptr;
    std::shared_ptr<void> hold() override { return run->hold() ? run->group : nullptr; }
    bool resume(Because because, std::uint64_t now_ns) override;
  } late;
  struct HandingOver : ltask::Task {
    Run* run = nullptr;
  } handing_over;

  Op begins, ends;
  /// Long local steps that need nothing. Threads that make progress do them chunk by chunk, not the call.
  struct Locals : ltask::Task {
    Run* run = nullptr;
    std::size_t ended = 0;
    std::uint64_t done = 0;  ///< bytes already done of the next step
  } locals;
  struct Freeing : ltask::Task {
    Run* run = nullptr;
  } freeing;

 private:
  static void begin(Context& context, CallOp& op);
  static void end(Context& context, CallOp& op);
};

}  // namespace canele::comm::collectives
