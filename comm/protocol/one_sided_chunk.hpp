// SPDX-License-Identifier: BSD-3-Clause
//
// A one-sided operation as its request holds it, and as a packet does.
//
// Used by one_sided_origin. Called by the thread that holds the engine's lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "comm/state/context.hpp"
#include "comm/state/one_sided.hpp"

namespace canele::comm::one_sided {

inline AccessKind operation_of(const Request& request) { return static_cast<AccessKind>(request.operation); }
inline std::uint16_t lane_of(const Request& request) { return request.header; }
inline bool is_get(const Request& request) { return operation_of(request) == AccessKind::get; }
/// Returns whether the end of the operation is told to the program. Else its request is the library's.
inline bool is_watched(const Request& request) { return request.synchronous; }

/// Returns whether the operation notifies the program of the target.
inline bool notifies(const Request& request) {
  const AccessKind operation = operation_of(request);
  return operation == AccessKind::notify || (operation == AccessKind::put && request.slot != 0);
}
/// Returns whether the target answers with data.
inline bool is_answered(const Request& request) {
  switch (operation_of(request)) {
    case AccessKind::get:
      return true;
    case AccessKind::atomic:
      return request.data.base != nullptr;
    case AccessKind::accumulate:
      return request.before != nullptr;
    default:
      return false;
  }
}
/// Returns how many bytes of the target's memory the operation accesses.
inline std::size_t length_of(const Request& request) {
  const bool is_part = operation_of(request) == AccessKind::accumulate;
  return request.data.length - (is_part ? request.moved : 0);
}

/// Returns whether the data of an operation goes as a message. A message is sent from the memory that the program
/// describes. That of a get may change meanwhile, and would no longer have its checksum.
inline bool is_large(const Context& context, AccessKind operation, std::uint64_t length) CANELE_UNDER_LOCK {
  if (operation > AccessKind::get || length <= context.one_sided.piece_limit) return false;
  return operation == AccessKind::put || !context.one_sided.copies_answers;
}
inline bool is_large(const Context& context, const Request& request) CANELE_UNDER_LOCK {
  return is_large(context, operation_of(request), request.data.length);
}
/// Returns how many bytes of data fit a packet with any operation to any peer.
std::size_t piece_limit(const Context& context);

/// Returns the length of the payload of the operation's chunk.
std::size_t payload_size(const Context& context, const Request& request) CANELE_UNDER_LOCK;
/// Writes the chunk of an operation at `out`. Returns its end.
std::byte* write(Context& context, Request& request, std::byte* out) CANELE_UNDER_LOCK;

}  // namespace canele::comm::one_sided
