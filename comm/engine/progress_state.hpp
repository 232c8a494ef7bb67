// SPDX-License-Identifier: BSD-3-Clause
//
// ProgressState: which threads make progress, how long they spin, and what they have learned about each other.
//
//   ProgressState ─┬─ worker, on_demand     threads of the library
//                  ├─ waiters, short_waits  threads of the program that block in it
//                  └─ deferred_work, topology_queues   work that some thread has to do
//
// Any thread; each part names its rules.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "comm/engine/core_siblings.hpp"
#include "comm/engine/deferred_work.hpp"
#include "comm/engine/poll_yield.hpp"
#include "comm/engine/program_sleep.hpp"
#include "comm/engine/waiters.hpp"
#include "ltask/idle.hpp"
#include "ltask/on_demand_progress.hpp"
#include "ltask/topology_task_queues.hpp"
#include "ltask/worker.hpp"

namespace canele::comm {

/// The runs of short waits: a run is made by one thread, without a wait of another thread between.
struct ShortWaits {
  std::atomic<std::uint32_t> run{0};         ///< length of the current run
  std::atomic<std::uint32_t> before{0};      ///< of the runs before: the longest, recent ones weigh most
  std::atomic<const void*> thread{nullptr};  ///< the thread of the current run
};

struct ProgressState {
  /// `oversubscribed`: this host has fewer units than polling threads.
  ProgressState(Platform& platform, ltask::ProgressSource& engine, ltask::Idle::Budget spin,
                ltask::Idle::Budget spin_beside_worker, bool oversubscribed)
      : idle(spin),
        idle_beside_worker(spin_beside_worker),
        worker(platform, engine, idle_beside_worker),
        on_demand(platform, engine, idle_beside_worker),
        empty_polls(platform, waiters.heuristics, oversubscribed) {}
  ~ProgressState() { delete topology_queues.load(); }
  ProgressState(const ProgressState&) = delete;
  ProgressState& operator=(const ProgressState&) = delete;

  const ltask::Idle::Budget idle;                ///< how long to spin and yield
  const ltask::Idle::Budget idle_beside_worker;  ///< for the worker, and for threads that wait while it polls
  /// Tasks of the program for one object of the topology; owned.
  std::atomic<ltask::TopologyTaskQueues*> topology_queues{nullptr};
  std::atomic<std::uint64_t> tasks_in_use{0};  ///< tasks of the program that have not ended
  ltask::Worker worker;
  ltask::OnDemandProgress on_demand;
  std::atomic<std::uint64_t> woken{0};  ///< number of waiting threads woken so far
  ShortWaits short_waits;
  Waiters waiters;
  Heartbeat heartbeat;  // beside waiters, because each step reads both
  DeferredWorkList deferred_work;
  std::size_t long_message = ~std::size_t{0};  ///< bytes from which a message over a system-call driver takes long
  Polls empty_polls;                           ///< polls that found nothing
  CoreSiblings core_siblings;                  ///< ranks on the same unit; constant, but for what all_wait() notes
  ProgramSleep program_sleep;
};

}  // namespace canele::comm
