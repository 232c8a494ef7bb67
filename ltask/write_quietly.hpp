// SPDX-License-Identifier: BSD-3-Clause
//
// Writes text to a descriptor that another process may have closed at its end, without harm to this process.
//
// A write to a pipe without a reader raises SIGPIPE, which ends a program that does not handle it. A message of the
// library must not do that, so the signal is blocked meanwhile and then removed. Any thread; blocks as write() does.
#pragma once

#include <string_view>

namespace canele::ltask {

/// Writes all of `text`. Returns 0, or the errno of the write that failed.
int write_quietly(int descriptor, std::string_view text) noexcept;

}  // namespace canele::ltask
