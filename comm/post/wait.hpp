// SPDX-License-Identifier: BSD-3-Clause
//
// Waiting, for the floors above: see wait.cpp.
//
// Any thread, except inside a callback.
#pragma once

#include <cstddef>
#include <cstdint>

#include "comm/engine/engine.hpp"
#include "comm/state/awaited.hpp"

namespace canele::comm::post {

/// Starts deferred work before a call makes progress. Returns false in the child of a fork, where no call may make
/// progress.
bool resume_unless_in_child(Engine& engine);
inline bool may_progress(Engine& engine) {
  return !engine.progress.deferred_work.any() || resume_unless_in_child(engine);
}

/// Blocks until one of the targets is done. Makes progress on `engine` (nullptr: none) unless its worker does. Returns
/// CANELE_EDEADLK in a callback and CANELE_ETIMEOUT at the deadline (0: none; platform time in ns).
int wait_for_one(Engine* engine, Target* targets, std::size_t count, std::uint64_t deadline_ns,
                 BlockedThread::In in = BlockedThread::In::wait);

/// Blocks until the target is done. The deadline is the program's: 0 looks once, UINT64_MAX is none.
int wait_until(Engine& engine, Target target, std::uint64_t deadline, BlockedThread::In in);

/// Blocks until one of the program's listed requests is done; at least one of them is pending. engine = nullptr: they
/// belong to several engines, and the caller makes the progress.
int wait_for_any(Engine* engine, canele_request_t* const* requests, std::size_t count, std::uint64_t deadline_ns);

/// Blocks like wait_for_one(), without a deadline and without the initial short spin, which the caller has done
/// already. The awaited ranks are executing the same collective. If they share the caller's core, it yields for long
/// before it sleeps.
int block_for_one(Engine& engine, Target* targets, std::size_t count);

/// Makes progress in finalize until `done()` returns true; `done()` is called under the engine's lock. Returns false at
/// the deadline.
bool progress_until(Engine& engine, std::uint64_t deadline_ns, bool (*done)(Engine&));

void fill_status(const Request& request, canele_status_t* status);
/// Keeps a description of a failed request's outcome for canele_error_detail.
void tell_outcome(const Request& request);

}  // namespace canele::comm::post
