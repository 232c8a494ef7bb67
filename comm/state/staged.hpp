// SPDX-License-Identifier: BSD-3-Clause
//
// Staged: what the engine knows of a message whose data is in device memory.
//
// The request of such a message has host memory in the place of the program's. So no floor below comm/device touches
// device memory, or knows of it. Only the end of the request is special: the data of a receive is copied to the device
// before the program is told.
//
//   Request.data ─base─▶ staging memory          Request.word has staged_bit, so no path publishes its events
//               └─context─▶ Staged               without may_publish()
//
// Threading: may_publish() is called under the engine's lock.
#pragma once

#include "comm/state/request.hpp"
#include "comm/state/under_lock.hpp"

namespace canele::comm {

struct Staged {
  /// Returns whether the events may be published now. Otherwise the owner publishes them later, together with those
  /// that follow. The last event of a request may be published only once it has returned true.
  bool (*may_publish)(Staged& staged, Context& context, Request& request, unsigned events);
  /// The last event has been published: the request does not use the staging memory any more, and may be gone.
  void (*ended_publishing)(Staged& staged);
};

/// Returns what is known of a request whose word has staged_bit.
inline Staged& staged_of(Request& request) { return *static_cast<Staged*>(const_cast<void*>(request.data.context)); }

}  // namespace canele::comm
