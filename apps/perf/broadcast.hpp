// SPDX-License-Identifier: BSD-3-Clause
//
// Broadcast: one message to many ranks; time until the last of them has it, by shape and by single sends.
//
// Who: main, on all ranks; rank 0 is the root. Threads: the main thread, and the worker of the library.
// Surprise: all ranks must be on one host: their clocks are compared.
#pragma once

#include "options.hpp"

namespace canele::perf {

/// Alone: a job for each driver and number of destinations. Returns the exit code: 1 if one of them failed.
int broadcast_each(const Options& options);

/// In a job: rank 0 to all others, all sizes, all ways in turn. Ends the job, with a message, if content is wrong.
int broadcast(const Options& options);

}  // namespace canele::perf
