// SPDX-License-Identifier: BSD-3-Clause
//
// Awaited: what a blocked thread waits for, and what reports know of that thread.
//
// Used by post/wait and other blocking calls, and by hang reports. Each object belongs to the waiting thread.
//
// This is separate from engine/waiters.hpp, which knows no requests. Tests can therefore explore every interleaving of
// that file.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "comm/state/request.hpp"

namespace canele::comm {

/// An event that a thread waits for: a word of flags whose upper 48 bits name the waiter. Requests and conditions have
/// one.
struct Target {
  std::atomic<std::uint64_t>* word;
  std::uint64_t mask;
  Context* writer;  ///< engine of a request, which sets `mask` under its lock; nullptr: any thread sets it, atomically
  bool done() const { return (word->load(std::memory_order_acquire) & mask) != 0; }
};

/// The set of things that a thread waits for; the first one to happen ends the wait. They are targets, or requests as
/// the program has listed them.
struct Awaited {
  const Target* targets = nullptr;
  canele_request_t* const* requests = nullptr;  ///< if not nullptr; NULL entries and null requests do not count
  std::size_t count = 0;

  /// Calls visit(const Target&) for each, until one call returns true. Returns whether one did.
  template <typename Visit>
  bool any(Visit visit) const;
  bool any_done() const {
    return any([](const Target& target) { return target.done(); });
  }
};

inline Target end_of(Request& request) { return {&request.word, event::finalized, request.context}; }

template <typename Visit>
bool Awaited::any(Visit visit) const {
  if (requests == nullptr) return std::any_of(targets, targets + count, visit);
  return std::any_of(requests, requests + count, [&](canele_request_t* one) {
    return one != nullptr && request_of(one).kind != Request::Kind::null && visit(end_of(request_of(one)));
  });
}

/// A thread that is blocked in the library and has slept more than once, for reports. Lies on that thread's stack.
struct BlockedThread {
  enum class In : std::uint8_t { wait, barrier, finalize, condition, queue, counter };  ///< the last three: any cause
  In in = In::wait;
  std::uint64_t since_ns = 0;
  Awaited awaited;
};

}  // namespace canele::comm
