// SPDX-License-Identifier: BSD-3-Clause
//
// Callback: how long a message waits for the bound worker while that worker is busy in the callback of another message.
//
// Runs on both ranks. Threads: the main thread, and the workers of the library. Both ranks must be on one host, because
// a message carries the date at which it was sent.
#pragma once

#include "options.hpp"

namespace canele::perf {

/// Runs a job for each driver. Returns the exit code: 1 if one of them failed.
int callback_each(const Options& options);

/// Measures all kinds of workers in turn, in a job of two. A failure ends the job, with a message.
int callback(const Options& options);

}  // namespace canele::perf
