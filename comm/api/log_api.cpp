// SPDX-License-Identifier: BSD-3-Clause
//
// The log in a function of the program.
#include <canele/log.h>

#include "comm/api/api.hpp"
#include "ltask/log_sink.hpp"

using namespace canele::comm;
using namespace canele::comm::api;

static_assert(static_cast<int>(canele::LogLevel::error) == CANELE_LOG_ERROR &&
              static_cast<int>(canele::LogLevel::warning) == CANELE_LOG_WARNING &&
              static_cast<int>(canele::LogLevel::info) == CANELE_LOG_INFO &&
              static_cast<int>(canele::LogLevel::debug) == CANELE_LOG_DEBUG);

int canele_on_log(canele_log_fn callback, void* argument) try {
  canele::ltask::set_log_sink({callback, argument});
  return CANELE_OK;
} catch (...) {
  return caught();
}
