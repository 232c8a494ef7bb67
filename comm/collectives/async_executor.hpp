// SPDX-License-Identifier: BSD-3-Clause
//
// AsyncExecutor: executes one schedule asynchronously, for one request of the user.
//
// api/ starts an executor. The completion callbacks of its messages then continue it.
//
// Threading: several threads may work on an executor at the same time: the calling thread and any that makes progress.
// Each brings one event, performs the steps that this event makes ready, and then those that these make ready. It keeps
// them in a queue of its own (ReadyQueue).
//
// Ownership: an executor has no owner and frees itself after its last event. `left` counts the steps that have not
// ended. It also counts one for each caller that needs the executor to stay: the call that still posts, and the thread
// that ends it after a failure.
//
//     one allocation:   AsyncExecutor │ StepState × steps │ Transfer × messages │ waiting × messages │ scratch
//                                        pending: needs        request ─event─▶ callback     sends beyond
//                                        that have not           ▲                │          inflight_limit
//                                        ended                   └ executor, step ┘
//
//     an event ─▶ its step has ended ─▶ pending of each step after it − 1 ─▶ 0: begin it: post, or do it here and now
//                                                                              └─ of a split tree: may be deferred
//
//     The widest levels of a split tree (split_policy.hpp) belong to the computing threads of the program. On the way
//     to the root they come first: the call stays until they have ended, or took too long, and defers the other levels
//     meanwhile. On the way from the root they come last, and are deferred. Correctness relies on neither: deferred
//     steps have a deadline, a thread that stays gives up, and ranks need not agree.
//
// Rejected: a thread or a lock for each executor. Two events of one executor are independent of each other, unless a
// step says otherwise. Rejected: to begin a step inside the loop that ends another. A chain of local steps would be a
// recursion.
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
#include "comm/state/under_lock.hpp"

namespace canele::comm::collectives {

/// Starts the next collective of the group. `user` has been prepared as a send of the group's session, and is completed
/// without further calls. Returns false if there is no memory; nothing has been done then. `profile`: decides how the
/// tree is split; nullptr: not at all.
bool start(Group& group, std::shared_ptr<const Schedule> schedule, const Work& work, Request& user,
           CallProfile* profile = nullptr);

struct StepState {
  std::atomic<std::uint32_t> pending{0};
  StepId next = no_step;       ///< in a ReadyQueue, or in the list of deferred steps.
  std::uint32_t transfer = 0;  ///< of a send or a receive: index of its Transfer
  bool admitted = false;       ///< of a send: it is within inflight_limit
};

struct Transfer {
  canele_request_t request;
  AsyncExecutor* executor;
  StepId step;
  std::atomic<bool> cancellable;  ///< a receive that has been posted
};

struct AsyncExecutor {
  struct Op : CallOp {
    AsyncExecutor* executor = nullptr;
  };

  AsyncExecutor(std::shared_ptr<Group> in, std::shared_ptr<const Schedule> what, const Work& on, Request& whose);

  std::span<const Step> steps() const { return schedule->steps(); }
  Place place() const { return {work, scratch}; }

  /// Keeps the executor alive. Returns false if it has ended. Otherwise release(1) must follow, directly or by another
  /// call.
  bool hold();
  /// Returns true once the collective has failed, here or elsewhere.
  bool given_up() const { return group->failed(number); }
  /// Called when the collective has failed: cancels receives, and skips the deferred steps.
  void give_up_and_release();
  /// Counts `ended` steps as done. The executor may be freed afterwards.
  void release(std::uint32_t ended);
  bool is_late(const Step& step) const { return step.level != 0 && step.level <= split; }
  /// Defers the step until release_deferred(). Returns false if the step need not be deferred, or release_deferred()
  /// has been called already.
  bool defers(StepId id);
  /// Returns all deferred steps, in the order in which they became ready. From now on no step is deferred.
  StepId release_deferred();

  const std::shared_ptr<Group> group;
  const std::shared_ptr<const Schedule> schedule;
  const Work work;
  Request& user;
  const std::uint64_t number;  ///< number of this collective in its group
  AsyncExecutor *next CANELE_LOCKED = nullptr, *prev CANELE_LOCKED = nullptr;  ///< in the group's list

  StepState* states = nullptr;
  Transfer* transfers = nullptr;
  std::uint32_t transfer_count = 0;
  std::byte* scratch = nullptr;

  std::atomic<std::uint32_t> left;
  std::atomic<bool> failed{false};    ///< a step has not been done
  std::atomic<bool> notified{false};  ///< a send has not been done, and its receiver has been notified
  std::atomic<int> owners{2};         ///< the submitter of `ends`, and `ends` itself: the last one frees the executor

  // Sends in flight: all of it under `inflight_locked`, held for a few instructions.
  std::atomic<bool> inflight_locked{false};
  std::uint32_t in_flight = 0, waiting_count = 0;
  StepId* waiting = nullptr;  ///< a heap, the first step on top

  // For split trees.
  static constexpr StepId none_deferred = no_step - 1;
  std::uint32_t split = 0;               ///< levels for the computing threads of the program; 0: none.
  std::atomic<std::uint32_t> late_left;  ///< messages of these levels that have not ended
  std::atomic<StepId> deferred{
      none_deferred};  ///< the last deferred step; none_deferred: steps are not deferred, or not any more
  CallProfile* profile = nullptr;
  struct Late final : DeferredWork {
    AsyncExecutor* executor = nullptr;
    std::shared_ptr<void> hold() override { return executor->hold() ? executor->group : nullptr; }
    bool resume(Because because, std::uint64_t now_ns) override;
  } late;
  struct BeginDeferred : ltask::Task {
    AsyncExecutor* executor = nullptr;
  } begin_deferred_task;

  Op begins, ends;
  /// Long local steps that need nothing. Threads that make progress do them chunk by chunk, not the call.
  struct Locals : ltask::Task {
    AsyncExecutor* executor = nullptr;
    std::size_t ended = 0;
    std::uint64_t done = 0;  ///< bytes already done of the next step
  } locals;
  struct Freeing : ltask::Task {
    AsyncExecutor* executor = nullptr;
  } freeing;

 private:
  static void begin(Context& context, CallOp& op) CANELE_UNDER_LOCK;
  static void end(Context& context, CallOp& op) CANELE_UNDER_LOCK;
};

}  // namespace canele::comm::collectives
