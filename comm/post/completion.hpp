// SPDX-License-Identifier: BSD-3-Clause
//
// Completions for the C API: the check of what a program names, entries of a queue, and the waits for queues and
// counters.
//
// Any thread; the waits not inside a callback.
#pragma once

#include <canele/post.h>

#include <cstdint>

#include "comm/engine/engine.hpp"
#include "comm/state/completion_counter.hpp"
#include "comm/state/completion_queue.hpp"
#include "comm/state/delivery.hpp"

namespace canele::comm::post {

/// Returns CANELE_EINVAL, with a message that begins with `call`, for a completion that cannot be delivered.
int check_completion(const canele_completion_t& done, const char* call);

/// Takes entries like canele_queue_take, without progress.
int take_entries(Engine& engine, CompletionQueue& queue, canele_entry_t* entries, int max);
/// Blocks like canele_queue_wait.
int wait_for_entries(Engine& engine, CompletionQueue& queue, canele_entry_t* entries, int max, std::uint64_t deadline);
/// Blocks like canele_completion_counter_wait.
int wait_for_count(Engine& engine, CompletionCounter& counter, std::uint64_t threshold, std::uint64_t deadline);

}  // namespace canele::comm::post
