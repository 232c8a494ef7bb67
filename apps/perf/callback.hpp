// SPDX-License-Identifier: BSD-3-Clause
//
// Callback: how long a message waits for the bound worker while that is busy in the callback of another one.
//
// Who: main, on both ranks. Threads: the main thread, and the workers of the library.
// Surprise: both ranks must be on one host: a message carries the date at which it was sent.
#pragma once

#include "options.hpp"

namespace canele::perf {

/// Alone: a job for each driver. Returns the exit code: 1 if one of them failed.
int callback_each(const Options& options);

/// In a job of two: all kinds of workers in turn. A failure ends the job, with a message.
int callback(const Options& options);

}  // namespace canele::perf
