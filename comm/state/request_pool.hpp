// SPDX-License-Identifier: BSD-3-Clause
//
// RequestPool: requests of the library's own, for operations that the program posts without a request.
//
// Any thread. A spin lock guards the list of free requests; it is held for a few instructions. The pool grows in blocks
// and gives no memory back before the engine ends.
#pragma once

#include <canele/post.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "comm/state/request.hpp"
#include "ltask/platform.hpp"

namespace canele::comm {

/// Longest message of canele_inject, in bytes.
inline constexpr std::size_t inject_limit = 512;

/// Where an error goes that belongs to no request of the program: see canele_session_on_error.
struct SessionErrors {
  canele_error_fn callback;
  void* argument;
  canele_session_t* session;
  int peer;
};

/// A request of the pool. Its callback delivers `done`, then gives the request back.
struct PooledRequest : Request {
  canele_completion_t done;
  SessionErrors errors;
  std::byte payload[inject_limit];  ///< copy of the data of canele_inject
  PooledRequest* next_free;
};

class RequestPool {
 public:
  explicit RequestPool(Platform& platform) : platform_(platform) {}

  /// Returns a null request, or nullptr if there is no memory.
  PooledRequest* take();
  /// Takes a request that has ended, and whose completion has been delivered.
  void give_back(PooledRequest& request);

 private:
  bool grow();

  Platform& platform_;
  std::atomic<bool> taken_{false};
  PooledRequest* free_ = nullptr;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
};

}  // namespace canele::comm
