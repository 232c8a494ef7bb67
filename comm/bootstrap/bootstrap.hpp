// SPDX-License-Identifier: BSD-3-Clause
//
// Bootstrap: how a rank finds its job: who am I, who are the others, what are their addresses, who has died.
//
// Who: the engine, at start, at first contact with a peer, and at the end.
// Threads: functions are called by one thread at a time; get() callbacks and the failure handler may run on any
//     thread (PMIx has its own) and must only store what they are told and wake the engine.
// Surprise: get() never blocks: PMIx_Get would, for ever, if the target has not committed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ltask/platform.hpp"

namespace canele::comm {

using Blob = std::vector<std::byte>;

class Bootstrap {
 public:
  virtual ~Bootstrap() = default;

  virtual std::string_view name() const = 0;  ///< "pmix", "pmi1", "singleton"
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int local_rank() const = 0;
  virtual int local_size() const = 0;
  virtual std::uint64_t job() const = 0;  ///< the same in all ranks, different between jobs with great probability
  virtual const std::string& host() const = 0;

  /// Publishes one blob (at most 64 KiB) of this rank; visible to others after commit(). Errors: false and *why.
  virtual bool put(std::string_view key, const Blob& blob, std::string* why) = 0;
  /// Makes what was put visible, and waits at most timeout_ns for all ranks to have done the same.
  /// false: *why names the missing ranks where the launcher tells them.
  virtual bool commit_and_fence(std::uint64_t timeout_ns, std::string* why) = 0;
  /// Asks for a blob of another rank. `deliver(ok, blob, why)` is called exactly once, on any thread, within
  /// timeout_ns; possibly inside the call.
  using Deliver = std::function<void(bool ok, Blob blob, std::string why)>;
  virtual void get(int rank, std::string_view key, std::uint64_t timeout_ns, Deliver deliver) = 0;
  /// Waits for all ranks (no data). Blocks at most timeout_ns.
  virtual bool fence(std::uint64_t timeout_ns, std::string* why) = 0;
  /// `died(rank)` is called, on any thread, when the launcher tells that a rank has died. At most one handler.
  virtual void on_failure(std::function<void(int rank)> died) = 0;
  /// The launcher has told the death of this rank. Known before a get() from it fails for that, and before `died` is
  /// called. Any thread.
  virtual bool has_died(int rank) const = 0;
  /// Ends the job with `code`. May return; the caller then exits.
  virtual void abort(int code, std::string_view reason) = 0;
  /// Leaves the job. Blocks shortly. Called once, last.
  virtual void finalize() = 0;

  /// A bootstrap without a thread of its own needs ours: this descriptor becomes readable when progress() has something
  /// to do. -1: it has threads, or nothing to hear.
  virtual int descriptor() const { return -1; }
  /// Hears and tells what there is, after waiting at most wait_ns for it (0: never waits). Any thread; several at once
  /// are fine. True if something was delivered.
  virtual bool progress(std::uint64_t wait_ns) {
    static_cast<void>(wait_ns);
    return false;
  }
};

/// Finds the launcher from the environment and joins its job: PMIx if its variables are there, else PMI-1 if its
/// descriptor is, else a job of one rank if no launcher's variables are there. nullptr and *why if a launcher is there
/// but cannot be reached or is not supported.
std::unique_ptr<Bootstrap> join_job(Platform& platform, std::uint64_t timeout_ns, std::string* why);

/// A job of one rank.
std::unique_ptr<Bootstrap> make_singleton(Platform& platform);

}  // namespace canele::comm
