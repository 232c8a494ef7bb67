// SPDX-License-Identifier: BSD-3-Clause
//
// Messages: the only way in which canele-run writes to its own standard error, and how it opens a stream for itself.
//
// Who: every file of this room. Threads: main thread only (private_stream: any).
// Surprise: nothing here waits for the reader of standard error, and nothing throws: what cannot be written now waits
// in a
//      bounded buffer; what does not fit is dropped, and the number of dropped lines is told as soon as there is room.
//
//   say() ──▶ waiting lines ──▶ a non-blocking description of the same pipe, terminal or file ──▶ the reader
#pragma once

#include <poll.h>

#include <string_view>
#include <vector>

namespace canele::run {

/// Writes "canele-run: " + `text` + newline to standard error, or keeps it for later.
void say(std::string_view text) noexcept;

/// Writes what waits, as far as there is room.
void push_messages() noexcept;

/// Adds standard error, if lines wait for room in it. The descriptor is asked for in the loop: push_messages() uses it.
void watch_messages(std::vector<pollfd>& polled);

/// At the end: writes what waits, for at most `milliseconds`.
void finish_messages(int milliseconds) noexcept;

/// Writes all of `text` (the help, the version), waiting for room as any program does. 0, or an errno.
int print(int fd, std::string_view text) noexcept;

/// The same pipe, terminal, file or socket as `fd`, but non-blocking for us alone: the ranks write to it, too, and must
/// not find it changed. Returns a new descriptor, or -1: it cannot be had (a pipe of another user).
int private_stream(int fd) noexcept;

}  // namespace canele::run
