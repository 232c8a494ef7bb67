// SPDX-License-Identifier: BSD-3-Clause
//
// Messages: the only way in which canele-run writes to its own standard error, and how it opens a stream for itself.
//
// Main thread only (private_stream: any thread). No function waits for the reader of standard error, and none throws.
// What cannot be written now waits in a bounded buffer. What does not fit is dropped. The number of dropped lines is
// printed as soon as there is room.
//
//   say() ──▶ waiting lines ──▶ a non-blocking description of the same pipe, terminal or file ──▶ the reader
#pragma once

#include <poll.h>

#include <string_view>
#include <vector>

namespace canele::run {

/// Writes "canele-run: " + `text` + newline to standard error, or keeps the line for later.
void say(std::string_view text) noexcept;

/// Writes the waiting lines, as far as there is room.
void push_messages() noexcept;

/// Adds standard error to `polled` if lines wait for room in it. The loop only wakes up; push_messages() writes.
void watch_messages(std::vector<pollfd>& polled);

/// Writes the waiting lines at the end, for at most `milliseconds`.
void finish_messages(int milliseconds) noexcept;

/// Writes all of `text` (the help, the version), waiting for room as any program does. Returns 0, or an errno.
int print(int fd, std::string_view text) noexcept;

/// Opens the pipe, terminal, file or socket of `fd` again, non-blocking for us alone. The ranks write to it, too, and
/// must not find it changed. Returns a new descriptor, or -1 if it cannot be opened (a pipe of another user).
int private_stream(int fd) noexcept;

}  // namespace canele::run
