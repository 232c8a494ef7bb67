// SPDX-License-Identifier: BSD-3-Clause
//
// The chunks of one-sided operations.
#include "comm/protocol/one_sided_chunk.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "comm/state/payload.hpp"
#include "comm/wire/wire.hpp"

namespace canele::comm::one_sided {
namespace {

/// Returns the code of what an atomic operation or an accumulate does.
std::uint8_t code_of(const Request& request) { return static_cast<std::uint8_t>(request.slot >> 8); }

bool has_strides(const Request& request) {
  return operation_of(request) <= AccessKind::get && is_strided(request.strides);
}

/// Returns how many bytes of data the chunk of the operation brings.
std::size_t bytes_to_put(const Context& context, const Request& request) CANELE_UNDER_LOCK;
std::size_t bytes_to_put(const Context& context, const Request& request) {
  switch (operation_of(request)) {
    case AccessKind::put:
      return is_large(context, request) ? 0 : request.data.length;
    case AccessKind::accumulate:
      return code_of(request) == CANELE_NO_OP ? 0 : length_of(request);
    default:
      return 0;
  }
}

}  // namespace

std::size_t piece_limit(const Context& context) {
  constexpr std::size_t around =
      wire::chunk_size(wire::long_size) + sizeof(std::uint32_t) + sizeof(wire::Notification) + sizeof(wire::Strides);
  std::size_t limit = ~std::size_t{0};
  for (const auto& instance : context.instances) limit = std::min(limit, instance->driver->capabilities().max_packet);
  return limit - sizeof(wire::Head) - around;
}

std::size_t payload_size(const Context& context, const Request& request) {
  const AccessKind operation = operation_of(request);
  std::size_t size = sizeof(std::uint32_t) + bytes_to_put(context, request);
  if (notifies(request)) size += sizeof(wire::Notification);
  if (operation == AccessKind::get) size += sizeof(wire::GetRange);
  if (operation == AccessKind::atomic) size += sizeof(wire::AtomicWord);
  if (operation == AccessKind::accumulate) size += sizeof(wire::Accumulate);
  if (operation == AccessKind::put && is_large(context, request)) size += sizeof(std::uint64_t);
  if (has_strides(request)) size += sizeof(wire::Strides);
  return size;
}

namespace {

template <typename Value>
std::byte* append(std::byte* out, const Value& value) {
  std::memcpy(out, &value, sizeof value);
  return out + sizeof value;
}

/// Writes what the chunk of an operation has between its flags and its data. Returns its end.
std::byte* write_fields(const Context& context, const Request& request, std::byte* out) CANELE_UNDER_LOCK;
[[gnu::noinline]] std::byte* write_fields(const Context& context, const Request& request, std::byte* out) {
  const AccessKind operation = operation_of(request);
  const Handle answer = is_answered(request) ? request.handle : Handle::none;
  const std::uint8_t code = code_of(request), low = static_cast<std::uint8_t>(request.slot);
  const auto length = static_cast<std::uint64_t>(request.data.length);
  if (notifies(request))
    out = append(out, wire::Notification{request.immediate, length, request.status_tag, request.slot, 0});
  if (operation == AccessKind::get) out = append(out, wire::GetRange{answer, length});
  if (operation == AccessKind::atomic)
    out = append(out, wire::AtomicWord{request.immediate, request.compare, answer, code, low, {}});
  if (operation == AccessKind::accumulate)
    out = append(out, wire::Accumulate{answer, static_cast<std::uint32_t>(length_of(request)), code, low, {}});
  if (operation == AccessKind::put && is_large(context, request)) out = append(out, length);
  return has_strides(request) ? append(out, request.strides) : out;
}

/// Returns whether the target shall acknowledge at once: for the operation itself, or for the flush that will follow.
bool asks_for_acknowledgement(Context& context, const Request& request) CANELE_UNDER_LOCK;
bool asks_for_acknowledgement(Context& context, const Request& request) {
  if (request.needs_fin) return !is_answered(request);
  return context.peer(request.rank).one_sided->stream(lane_of(request)).asking == request.number;
}

}  // namespace

std::byte* write(Context& context, Request& request, std::byte* out) {
  using wire::Type;
  constexpr Type types[] = {Type::put, Type::get, Type::atomic, Type::accumulate, Type::notify, Type::flush};
  const AccessKind operation = operation_of(request);
  const std::size_t size = payload_size(context, request), bytes = bytes_to_put(context, request);
  const std::uint32_t flags = (notifies(request) ? wire::access_notifies : 0) |
                              (is_large(context, request) ? wire::access_by_message : 0) |
                              (asks_for_acknowledgement(context, request) ? wire::access_wants_ack : 0) |
                              (has_strides(request) ? wire::access_strided : 0);
  const bool has_offset = operation <= AccessKind::accumulate;
  const wire::Head head{has_offset ? request.status_tag : 0, request.key != nullptr ? request.key->index : 0,
                        lane_of(request), types[static_cast<std::size_t>(operation)], 0};
  out = append(wire::put_head(out, head, size), flags);
  if (size != sizeof flags + bytes) {
    [[maybe_unused]] const std::byte* const end = out + (size - sizeof flags - bytes);
    out = write_fields(context, request, out);
    assert(out == end);
  }
  if (bytes != 0) data::gather(request.data, request.moved, bytes, out);
  return out + bytes;  // a driver may refuse the packet, and then the chunk is written again
}

}  // namespace canele::comm::one_sided
