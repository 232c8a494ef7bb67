// SPDX-License-Identifier: BSD-3-Clause
//
// Bootstrap: how a rank finds its job: its own rank, the other ranks, their addresses, and deaths.
//
// Used by the engine at start, at first contact with a peer, and at the end. One thread at a time calls these
// functions. get() callbacks and the failure handler may run on any thread (PMIx has its own). They must only store
// what they are told, and wake the engine. get() never blocks; PMIx_Get would block for ever if the target has not
// committed.
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

  virtual std::string_view name() const = 0;  ///< "pmix", "pmi1", "singleton".
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int local_rank() const = 0;
  virtual int local_size() const = 0;
  virtual std::uint64_t job() const = 0;  ///< equal on all ranks; differs between jobs with high probability.
  virtual const std::string& host() const = 0;

  /// Publishes one blob (at most 64 KiB) of this rank; visible to other ranks after commit_and_fence(). Returns false
  /// and sets *why on an error.
  virtual bool put(std::string_view key, const Blob& blob, std::string* why) = 0;
  /// Makes what was put visible, and waits at most timeout_ns for all ranks to do this. Returns false if not; *why then
  /// names the missing ranks, if the launcher reports them.
  virtual bool commit_and_fence(std::uint64_t timeout_ns, std::string* why) = 0;
  /// Asks for a blob of another rank. `deliver(ok, blob, why)` is called exactly once, on any thread, within
  /// timeout_ns; possibly inside the call.
  using Deliver = std::function<void(bool ok, Blob blob, std::string why)>;
  virtual void get(int rank, std::string_view key, std::uint64_t timeout_ns, Deliver deliver) = 0;
  /// Waits for all ranks, without data. Blocks at most timeout_ns.
  virtual bool fence(std::uint64_t timeout_ns, std::string* why) = 0;
  /// Sets the failure handler; at most one. `died(rank)` is called, on any thread, when the launcher reports that a
  /// rank has died.
  virtual void on_failure(std::function<void(int rank)> died) = 0;
  /// Returns true if the launcher has reported the death of this rank. True before a get() from the rank fails for that
  /// reason, and before `died` is called. Any thread.
  virtual bool has_died(int rank) const = 0;
  /// Ends the job with `code`. May return; the caller then exits.
  virtual void abort(int code, std::string_view reason) = 0;
  /// Leaves the job. Blocks briefly. Called once, last.
  virtual void finalize() = 0;

  /// For a bootstrap that has no thread of its own and needs the engine's: returns a descriptor that becomes readable
  /// when progress() has work. -1: it has threads, or nothing to receive.
  virtual int descriptor() const { return -1; }
  /// Receives and delivers what there is, after waiting at most wait_ns for it (0: never waits). Any thread; several at
  /// once are allowed. Returns true if something was delivered.
  virtual bool progress(std::uint64_t wait_ns) {
    static_cast<void>(wait_ns);
    return false;
  }
};

/// Finds the launcher from the environment and joins its job. PMIx comes first if its variables are set, then PMI-1 if
/// its descriptor is. A job of one rank results only if no launcher's variables are set. Returns nullptr and sets *why
/// if there is a launcher that cannot be reached or is not supported.
std::unique_ptr<Bootstrap> join_job(Platform& platform, std::uint64_t timeout_ns, std::string* why);

/// Makes a job of one rank.
std::unique_ptr<Bootstrap> make_singleton(Platform& platform);

}  // namespace canele::comm
