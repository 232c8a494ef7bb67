// SPDX-License-Identifier: BSD-3-Clause
//
// PostedUse: the request of one post, and the registration of its completion.
//
// Lies on the stack of the thread that posts.
#pragma once

#include <canele/post.h>

#include "comm/state/delivery.hpp"
#include "comm/state/request.hpp"
#include "comm/state/request_pool.hpp"

namespace canele::comm::api {

/// The request of one post, with its registration: the program's request, or one of the pool.
class PostedUse {
 public:
  /// Returns the error to answer, if there is no request that can be posted.
  int begin(canele_session_t* session, canele_request_t* given, const canele_completion_t& done, int peer,
            const char* call);
  /// The same for a send, whose request canele_request_begin may have begun.
  int begin_send(canele_session_t* session, canele_request_t* given, const canele_completion_t& done, int peer,
                 const char* call);
  Request& request() { return *request_; }
  /// Registers the completion, before the post.
  void listen_first();
  /// Ends a post that was not made, with its error.
  int undo(int code);
  /// The operation has ended within its post, and no other thread knows of the request.
  int ended(bool may_finish);
  /// Registers the completion after the post, unless the operation has ended with success.
  int listen_after(const char* call);

 private:
  Request* request_ = nullptr;
  PooledRequest* pooled_ = nullptr;
  Listening listening_;
};

/// Returns true if the completion may be delivered within the post. A callback of the program might post again, and so
/// on without end; inside a callback its event is therefore left to a task.
bool may_deliver_now(const canele_completion_t& done);

}  // namespace canele::comm::api
