// SPDX-License-Identifier: BSD-3-Clause
//
// Completions that a post names: registering them with a request, delivering them.
//
// Any thread. Deliveries are made without the engine's lock.
//
// A request has room for a callback and two pointers, not for a canele_completion_t. Each kind of completion is
// therefore a callback of the library. A request of the pool keeps the completion itself.
#pragma once

#include <canele/post.h>

#include <atomic>
#include <cstdint>

#include "comm/state/one_sided.hpp"
#include "comm/state/queue_node.hpp"
#include "comm/state/request.hpp"
#include "comm/state/request_pool.hpp"
#include "ltask/task.hpp"

namespace canele::comm {

/// A registration for the events of one use of a request.
struct Listening {
  unsigned mask = 0;  ///< of events; 0: no registration
  canele_callback_fn callback = nullptr;
  void* argument = nullptr;
  void* node_user = nullptr;  ///< for the completions of the library
};

/// Writes the registration to the request. The caller says in its word which events are wanted.
inline void keep(Request& request, const Listening& listening) {
  request.callback = listening.callback;
  request.argument = listening.argument;
  request.user = listening.node_user;
}
/// Registers for the next use of a request that no other thread accesses.
inline void listen_next(Request& request, const Listening& listening) {
  keep(request, listening);
  request.word.store(std::uint64_t{listening.mask} << RequestWord::wanted_shift, std::memory_order_relaxed);
}

/// Returns the registration that delivers `done` for a request of the program's.
Listening listening_of(const canele_completion_t& done);
/// Returns the registration for a request of the pool, which delivers request.done.
Listening listening_of(PooledRequest& request);
/// Delivers the completion of a request that has ended, and that no other thread knows of.
void deliver_now(Request& request, const Listening& listening);
/// Delivers the completion of a counter's threshold. `node`: of the counter. `error`: of what was counted.
void deliver(const canele_completion_t& then, QueueNode& node, int error);

/// Delivers a notification of a peer at once, under the engine's lock, if it adds to a counter and none is on its way.
/// Else returns false, and the notification goes by deliver_in_order().
bool deliver_under_lock(Context& context, const canele_completion_t& then) CANELE_UNDER_LOCK;
/// Delivers a notification of a peer by a task, after those that have come before it.
void deliver_in_order(one_sided::Delivery& delivery, one_sided::Notification& notification);

/// The callback that puts a request into a completion queue, which is its argument.
void push_to_queue(canele_request_t* request, unsigned events, void* argument);

}  // namespace canele::comm
