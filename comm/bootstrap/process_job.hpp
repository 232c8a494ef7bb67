// SPDX-License-Identifier: BSD-3-Clause
//
// ProcessJob: the one connection of this process to its launcher, and the engines that share it.
//
// Used by join_job(). Any thread; engines are created one after the other, whichever threads create them. This is the
// only global object of comm. A launcher knows processes, not engines: two connections of one process would be one rank
// twice. Keys carry the number of the engine, which counts the engines that all ranks have created.
//
//   engine 1 ──▶ Seat ─┐
//   engine 2 ──▶ Seat ─┴─▶ ProcessJob ──▶ ProcessBootstrap (PMIx, PMI-1) ──▶ launcher
//                 ▲                           │
//                 └── Line: open gets ◀───────┘ answers, deaths: on any thread
//
// Rejected: a connection for each engine. libpmix has one in a process, and a rank that joins anew races with those
// that still leave.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "comm/bootstrap/process_bootstrap.hpp"

namespace canele::comm {

/// The callbacks of one engine. A Line lives until the last of its callbacks has come.
class Line;

class ProcessJob {
 public:
  using Connect = std::function<std::unique_ptr<ProcessBootstrap>(std::string* why)>;

  /// Returns the object of this process. It is never destroyed: a destructor of the program may end its engine after
  /// our destructors have run.
  static ProcessJob& here();

  ProcessJob() = default;
  ~ProcessJob() = default;
  ProcessJob(const ProcessJob&) = delete;
  ProcessJob& operator=(const ProcessJob&) = delete;

  /// Returns a seat for one more engine; `connect` is called for the first. `platform` must live until the process
  /// exits.
  std::unique_ptr<Bootstrap> join(Platform& platform, std::uint64_t timeout_ns, const Connect& connect,
                                  std::string* why);
  /// Leaves the job when the process exits. If the process exits with engines, the last of them leaves. If it never
  /// ends them, the process stays in the job, so that the launcher sees an abnormal end.
  void process_ends();

 private:
  friend class Seat;
  bool connect_or_resume(Platform& platform, bool first, std::uint64_t timeout_ns, const Connect& connect,
                         std::string* why);
  void tell_death(int rank);
  void remove(const std::shared_ptr<Line>& line);

  std::mutex creating_;        ///< held from the join of an engine to the end of its first fence with all ranks
  std::uint64_t created_ = 0;  ///< engines that all ranks have created; under creating_
  /// Locked after creating_, by one thread that connects, rests or resumes. Guards the next two.
  std::mutex connecting_;
  std::unique_ptr<ProcessBootstrap> connection_;
  bool exiting_ = false;
  std::mutex lines_mutex_;  ///< locked last, and free during callbacks
  std::set<std::shared_ptr<Line>> lines_;
  std::atomic<long> process_{0};  ///< id of the process that has connected; a child after fork() has another id
};

}  // namespace canele::comm
