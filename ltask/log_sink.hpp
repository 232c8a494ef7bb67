// SPDX-License-Identifier: BSD-3-Clause
//
// LogSink: a function of the program that receives the log of this process, in place of stderr.
//
// Any thread, also in the child of a fork: no lock. A sink that was replaced is kept, since another thread may be about
// to call it. Programs replace it seldom.
#pragma once

#include <string_view>

#include "ltask/platform.hpp"

namespace canele::ltask {

struct LogSink {
  void (*call)(int level, const char* text, void* argument) = nullptr;
  void* argument = nullptr;
};

/// Sets the sink; call = nullptr: stderr. Throws std::bad_alloc.
void set_log_sink(LogSink sink);
/// Gives the text to the sink. Returns false if there is none, or no memory for a copy of the text.
bool log_to_sink(LogLevel level, std::string_view text) noexcept;

}  // namespace canele::ltask
