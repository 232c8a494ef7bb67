// SPDX-License-Identifier: BSD-3-Clause
//
// ProcessJob: the one connection of this process to its launcher, and the engines that share it.
//
// Who: join_job(). Threads: any; engines are created one after the other, whichever threads ask.
// Surprise: this is the one global of comm. A launcher knows processes, not engines: two connections of one process
//     would be one rank twice. Keys carry the number of the engine, which counts those that all ranks have created.
//
//   engine 1 ──▶ Seat ─┐
//   engine 2 ──▶ Seat ─┴─▶ ProcessJob ──▶ ProcessBootstrap (PMIx, PMI-1) ──▶ launcher
//                 ▲                           │
//                 └── Line: open gets ◀───────┘ answers, deaths: on any thread
//
//   Rejected: a connection for each engine. libpmix has one in a process, and a rank that joins anew races with those
//   that still leave.
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

/// The callbacks of one engine. It lives until the last of them has come.
class Line;

class ProcessJob {
 public:
  using Connect = std::function<std::unique_ptr<ProcessBootstrap>(std::string* why)>;

  /// That of this process. It is never destroyed: a destructor of the program may end its engine after ours have run.
  static ProcessJob& here();

  ProcessJob() = default;
  ~ProcessJob() = default;
  ProcessJob(const ProcessJob&) = delete;
  ProcessJob& operator=(const ProcessJob&) = delete;

  /// A seat for one more engine; `connect` is called for the first. `platform` must live until the process exits.
  std::unique_ptr<Bootstrap> join(Platform& platform, std::uint64_t timeout_ns, const Connect& connect,
                                  std::string* why);
  /// The process exits. Leaves the job, or has the last engine do so. A process that exits with engines stays in the
  /// job: the launcher is to see that it has not ended well.
  void process_ends();

 private:
  friend class Seat;
  bool connect_or_resume(Platform& platform, bool first, std::uint64_t timeout_ns, const Connect& connect,
                         std::string* why);
  void tell_death(int rank);
  void leave(const std::shared_ptr<Line>& line);

  std::mutex creating_;        ///< held from the join of an engine until all ranks have met
  std::uint64_t created_ = 0;  ///< engines that all ranks have created; under creating_
  std::mutex connecting_;      ///< after creating_: one connects, rests or resumes; guards the next two
  std::unique_ptr<ProcessBootstrap> connection_;
  bool exiting_ = false;
  std::mutex lines_mutex_;  ///< last, and free during callbacks
  std::set<std::shared_ptr<Line>> lines_;
  std::atomic<long> process_{0};  ///< that has connected; a child after fork() is another one
};

}  // namespace canele::comm
