// SPDX-License-Identifier: BSD-3-Clause
//
// Broadcast: one message to many ranks. Measures the time until the last of them has it, by shape and by single sends.
//
// Runs on all ranks; rank 0 is the root. Threads: the main thread, and the worker of the library. All ranks must be on
// one host, because their clocks are compared.
#pragma once

#include "options.hpp"

namespace canele::perf {

/// Runs a job for each driver and number of destinations. Returns the exit code: 1 if one of them failed.
int broadcast_each(const Options& options);

/// Sends from rank 0 to all other ranks, with all sizes and all ways in turn. Called in a job. Ends the job, with a
/// message, if content is wrong.
int broadcast(const Options& options);

}  // namespace canele::perf
