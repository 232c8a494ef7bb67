// SPDX-License-Identifier: BSD-3-Clause
//
// Run: one schedule under way for one request of the user.
//
// Who: api/ starts it; then the completion callbacks of its own messages carry it on.
// Threads: the one that calls, and any that makes progress, several at once: each brings an event, does what that has
//     let go, and what that lets go, on a list of its own (Worklist).
// Surprise: nobody owns a run, it ends with its last event. `left` counts the steps that have not ended, and one for
//     whoever must not lose it meanwhile: the call that still posts, and who ends the group.
//
//     one allocation:   Run │ StepState × steps │ Transfer × messages │ waiting × messages │ scratch
//                              pending: needs        request ─event─▶ callback     sends that the
//                              that have not           ▲                │          window keeps back
//                              ended                   └── run, step ───┘
//
//     an event ─▶ its step has ended ─▶ pending of each step after it − 1 ─▶ 0: begin it: post, or do it here and now
//                                                                              └─ of a split tree: may be held
//
//     Of a split tree (splits.hpp) the widest levels are for the threads of the program. On the way to the root they
//     come first: the call stays until they have ended, or too long, and holds the others meanwhile. On the way from it
//     they come last, and are held. Nothing relies on either: what is held has a date, who stays gives up, and ranks
//     need not agree.
//
// Rejected: a thread or a lock for each run (two events of one run have nothing to do with each other, unless a step
//     says so); to begin a step inside the loop that ends another (a chain of local steps would be a recursion).
#pragma once

#include <canele/canele.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "comm/collectives/group.hpp"
#include "comm/collectives/schedule.hpp"
#include "comm/collectives/splits.hpp"
#include "comm/collectives/steps.hpp"
#include "comm/core/put_off.hpp"
#include "comm/core/request.hpp"

namespace canele::comm::collectives {

/// Begins the next collective of the group; `user` has been made ready as a send of the group's session. From now on it
/// ends by itself. False: no memory, nothing has been done. `course`: how its tree is split; nullptr: not at all.
bool start(Group& group, std::shared_ptr<const Schedule> schedule, const Work& work, Request& user,
           Course* course = nullptr);

struct StepState {
  std::atomic<std::uint32_t> pending{0};
  StepId next = no_step;       ///< in a Worklist, or among those that are held
  std::uint32_t transfer = 0;  ///< of a send or a receive: which
  bool admitted = false;       ///< of a send: the window has let it pass
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

  /// False: it has ended. Else release(1) afterwards, or what does so.
  bool hold();
  /// The group is over: receives are cancelled, and what is held is not done.
  void give_up_and_release();
  /// So many steps have ended. The run may be gone afterwards.
  void release(std::uint32_t ended);
  bool is_late(const Step& step) const { return step.level != 0 && step.level <= split; }
  /// The step is begun when somebody lets it go. False: that has happened, or need not.
  bool holds_back(StepId id);
  /// All that is held, in the order in which it became ready; from now on nothing is.
  StepId let_go();

  const std::shared_ptr<Group> group;
  const std::shared_ptr<const Schedule> schedule;
  const Work work;
  Request& user;
  const std::uint64_t number;            ///< of the collectives of the group
  Run *next = nullptr, *prev = nullptr;  ///< of the group's; under the engine's lock

  StepState* states = nullptr;
  Transfer* transfers = nullptr;
  std::uint32_t transfer_count = 0;
  std::byte* scratch = nullptr;

  std::atomic<std::uint32_t> left;
  std::atomic<bool> failed{false};  ///< a step has not been done
  std::atomic<int> owners{2};       ///< who has submitted its end, and that operation: the last one frees it

  // The window: all of it under `window_taken`, for a few instructions.
  std::atomic<bool> window_taken{false};
  std::uint32_t under_way = 0, waiting_count = 0;
  StepId* waiting = nullptr;  ///< a heap, the first step on top

  // Of a split tree.
  static constexpr StepId none_held = no_step - 1;
  std::uint32_t split = 0;               ///< levels for the threads of the program; 0: none
  std::atomic<std::uint32_t> late_left;  ///< messages of these that have not ended
  std::atomic<StepId> held{none_held};   ///< the last one; none_held: nothing is to be held (any more)
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
  /// The local steps that need nothing, where they are long: chunk by chunk, by who makes progress, not in the call.
  struct Locals : ltask::Task {
    Run* run = nullptr;
    std::size_t ended = 0;
    std::uint64_t done = 0;  ///< bytes of the next one
  } locals;
  struct Freeing : ltask::Task {
    Run* run = nullptr;
  } freeing;

 private:
  static void begin(Engine& engine, CallOp& op);
  static void end(Engine& engine, CallOp& op);
};

}  // namespace canele::comm::collectives
