// SPDX-License-Identifier: BSD-3-Clause
//
// Options of am. One thread.
//
// Every combination of kinds, sizes and measures is measured, in this order.
#pragma once

#include <vector>

#include "measured.hpp"

namespace canele::perf {

/// How a message is sent, and what takes it.
enum class ActiveKind {
  handler,     ///< canele_am_send, canele_am_register
  queue,       ///< canele_am_post, canele_am_open
  concurrent,  ///< canele_am_send, a handler with CANELE_AM_CONCURRENT
  inject,      ///< canele_am_inject, canele_am_register
  call         ///< canele_am_call, a handler that replies
};

struct ActiveOptions {
  std::vector<ActiveKind> kinds = {ActiveKind::handler, ActiveKind::queue, ActiveKind::concurrent, ActiveKind::inject,
                                   ActiveKind::call};
  /// latency: a message and its answer. rate: a window of messages, and one empty answer.
  std::vector<Measure> measures = {Measure::latency, Measure::rate};
  int window = 0;     ///< of rate; 0: by the size
  bool poll = false;  ///< wait by canele_progress
};

}  // namespace canele::perf
