// SPDX-License-Identifier: BSD-3-Clause
//
// Awaited: what a blocked thread waits for, by the words of requests or of others; and what reports know of the thread.
//
// Who: api/wait and its neighbours, hang reports. Threads: those that wait.
// Surprise: apart from waiters.hpp, which knows no requests and so can be explored in every order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "comm/core/request.hpp"
#include "comm/core/waiters.hpp"

namespace canele::comm {

/// What a thread waits for, of which the first ends the wait: targets, or requests as the program has listed them.
struct Awaited {
  const Target* targets = nullptr;
  canele_request_t* const* requests = nullptr;  ///< if not nullptr; NULL entries and null requests do not count
  std::size_t count = 0;

  /// visit(const Target&) for each; true: no more.
  template <typename Visit>
  bool any(Visit visit) const;
  bool any_done() const {
    return any([](const Target& target) { return target.done(); });
  }
};

inline Target end_of(Request& request) { return {&request.word, event::finalized, request.engine}; }

template <typename Visit>
bool Awaited::any(Visit visit) const {
  if (requests == nullptr) return std::any_of(targets, targets + count, visit);
  return std::any_of(requests, requests + count, [&](canele_request_t* one) {
    return one != nullptr && request_of(one).kind != Request::Kind::null && visit(end_of(request_of(one)));
  });
}

/// A thread that is blocked in the library and has slept more than once, for reports. On its stack.
struct Blocked {
  enum class In : std::uint8_t { wait, barrier, finalize, condition };
  In in = In::wait;
  std::uint64_t since_ns = 0;
  Awaited awaited;
};

}  // namespace canele::comm
