// SPDX-License-Identifier: BSD-3-Clause
//
// QueueNode: what a completion queue links.
//
// Part of requests and of completion counters; post/completion_queue links them. The thread that adds or takes a node
// writes it, under the lock of the queue.
#pragma once

#include <cstdint>

namespace canele::comm {

struct QueueNode {
  /// The object that a node is part of.
  enum class Owner : std::uint8_t {
    request,        ///< a Request of the program
    pooled,         ///< a PooledRequest
    counter,        ///< a CompletionCounter
    notification,   ///< a one_sided::Notification
    active_message  ///< an ActiveBlock
  };

  std::uintptr_t next;  ///< link of the next node: see CompletionQueue
  void* user;           ///< for the program
};

}  // namespace canele::comm
