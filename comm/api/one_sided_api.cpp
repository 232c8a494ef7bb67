// SPDX-License-Identifier: BSD-3-Clause
//
// One-sided operations: lanes, notification slots, and the posts.
//
// Any thread. Objects are made and ended under the engine's lock; an operation is submitted like a send.
#include <canele/one_sided.h>

#include <string>

#include "comm/api/device_use.hpp"
#include "comm/api/one_sided_objects.hpp"
#include "comm/api/one_sided_post.hpp"
#include "comm/operators/accumulate.hpp"
#include "comm/operators/operators.hpp"
#include "comm/post/direct_access.hpp"
#include "comm/post/mapped_access.hpp"
#include "comm/post/put.hpp"
#include "comm/protocol/one_sided_origin.hpp"

namespace canele::comm::api {
namespace {

using drivers::RmaOp;
using one_sided::AccessKind;
using one_sided::Lane;
using one_sided::RemoteKey;

/// Returns the session of one-sided operations if a post may end within itself: nothing waits for the event of the
/// request (nullptr: none). Else nullptr.
[[gnu::always_inline]] inline Session* session_to_end_in(const one_sided::State& state, canele_request_t* request) {
  Session* const session = state.session.load(std::memory_order_acquire);  // release: enable()
  if (session == nullptr || !session->posts_fast || fork::in_child) return nullptr;
  if (request == nullptr) return session;
  const Request& r = request_of(request);
  return postable(&r, session) && is_unwatched(r) ? session : nullptr;
}

/// The shortest way of an operation without options: the calling thread accesses mapped memory, in the default lane.
/// Returns false, with nothing done, if anything stands in the way. post_access() then does the operation, or reports
/// the caller's mistake.
template <typename Accessing>
[[gnu::always_inline]] inline bool accesses_mapped(canele_key_t* key, std::uint64_t offset, std::uint64_t length,
                                                   std::uint32_t wanted, canele_request_t* request,
                                                   Accessing accessing) {
  if (key == nullptr) return false;
  assume_lock();  // as in find_session()
  const RemoteKey& k = key_of(key);
  Session* const session = session_to_end_in(k.context->one_sided, request);
  std::byte* const base = session != nullptr ? post::mapped_memory(k, *k.context->one_sided.default_lane) : nullptr;
  if (base == nullptr || !allows(k, offset, length, wanted)) return false;
  accessing(base + offset);
  if (request != nullptr) end_as_send(request_of(request), *session, k.rank, offset, length);
  return true;
}

/// The same for a flush that has nothing to wait for.
bool flushes_at_once(Engine& engine, int rank, canele_request_t* request) {
  assume_lock();  // as in find_session()
  Session* const session = session_to_end_in(engine.one_sided, request);
  if (session == nullptr || rank < 0 || rank >= engine.size || !post::flush_at_once(*engine.one_sided.default_lane))
    return false;
  if (request != nullptr) end_as_send(request_of(request), *session, rank, 0, 0);
  return true;
}

/// Returns whether the data is one valid piece of memory.
inline bool is_piece(const canele_data_t* data) {
  return data != nullptr && data->segments == nullptr && data->base != nullptr;
}

/// Returns the lane of an operation whose options, as far as they matter to one that ends within its post, say nothing
/// else. nullptr: they say more.
[[gnu::always_inline]] inline Lane* lane_alone(const canele_access_options_t* options, one_sided::State& state) {
  if (options == nullptr) return state.default_lane;
  const std::uint32_t done = options->done.kind;
  const bool is_alone = options->struct_size == sizeof *options &&
                        (done == CANELE_COMPLETE_POLL || done == CANELE_COMPLETE_NONE) && options->slot == 0 &&
                        (options->immediate | options->block | options->stride) == 0;
  if (!is_alone) return nullptr;
  return options->lane != nullptr ? &lane_of(options->lane) : state.default_lane;
}

/// The short way of a put or get of memory that is not mapped, without a request: this process copies by itself if the
/// target permits, or sends a put in a packet of its own. Else like accesses_mapped().
template <RmaOp op>
[[gnu::always_inline]] inline bool accesses_registered(RemoteKey& key, std::uint64_t offset, const canele_data_t& data,
                                                       const canele_access_options_t* options) {
  constexpr bool puts = op == RmaOp::put;
  assume_lock();  // as in find_session()
  one_sided::State& state = key.context->one_sided;
  if (session_to_end_in(state, nullptr) == nullptr) return false;
  Lane* const lane = lane_alone(options, state);
  if (lane == nullptr || lane->context != key.context) return false;
  if (!allows(key, offset, data.length, puts ? CANELE_ACCESS_WRITE : CANELE_ACCESS_READ)) return false;
  if (post::may_go_directly(key, *lane, data.length, 0)) return post::access_directly(key, *lane, op, offset, data);
  if constexpr (puts) return post::put_at_once(engine_of(*key.context), {key, *lane, offset, data.base, data.length});
  return false;
}

/// The short ways of a put or get. `accessing`: the access to memory that is mapped.
template <RmaOp op, typename Accessing>
[[gnu::always_inline]] inline bool accesses_at_once(canele_key_t* key, std::uint64_t offset, const canele_data_t* data,
                                                    const canele_access_options_t* options, canele_request_t* request,
                                                    Accessing accessing) {
  if (key == nullptr || !is_piece(data)) return false;
  if (key_of(key).mapped.load(std::memory_order_relaxed) == nullptr)
    return request == nullptr && accesses_registered<op>(key_of(key), offset, *data, options);
  constexpr std::uint32_t wanted = op == RmaOp::put ? CANELE_ACCESS_WRITE : CANELE_ACCESS_READ;
  return options == nullptr && accesses_mapped(key, offset, data->length, wanted, request, accessing);
}

}  // namespace
}  // namespace canele::comm::api

using namespace canele::comm;
using namespace canele::comm::api;

// ---- lanes and notification slots -----------------------------------------------------------------------------------

int canele_lane_open(canele_engine_t* engine, canele_lane_t** lane) try {
  constexpr const char* call = "canele_lane_open";
  constexpr std::size_t most = UINT16_MAX;
  if (engine == nullptr || lane == nullptr) return missing(call, "engine and lane");
  Engine& e = engine_of(engine);
  if (const int code = enable(e, call); code != CANELE_OK) return code;
  const EngineGuard guard(e);
  one_sided::State& state = e.one_sided;
  if (state.free_lanes.empty()) {
    if (state.lanes.size() > most)
      return error(CANELE_ENOMEM,
                   std::string(call) + ": " + std::to_string(most) + " lanes are open; close some first");
    Lane& made = state.lanes.emplace_back();
    made.context = &e;
    made.number = static_cast<std::uint16_t>(state.lanes.size() - 1);
    *lane = reinterpret_cast<canele_lane_t*>(&made);
    return CANELE_OK;
  }
  Lane& one = state.lanes[state.free_lanes.back()];
  state.free_lanes.pop_back();
  one.context = &e;
  *lane = reinterpret_cast<canele_lane_t*>(&one);
  return CANELE_OK;
} catch (...) {
  return caught();
}

int canele_lane_close(canele_lane_t* lane) try {
  if (lane == nullptr) return missing("canele_lane_close", "lane");
  if (fork::in_child) return reject_in_child("canele_lane_close");
  Lane& one = lane_of(lane);
  if (one.context == nullptr) return error(CANELE_EINVAL, "canele_lane_close: the lane is closed");
  Engine& engine = engine_of(*one.context);
  const EngineGuard guard(engine);
  if (one.operations != 0)
    return error(CANELE_EBUSY, "canele_lane_close: " + std::to_string(one.operations) + " operations are pending");
  one_sided::forget_errors(engine, one.number);
  engine.one_sided.free_lanes.push_back(one.number);
  one.context = nullptr;
  return CANELE_OK;
} catch (...) {
  return caught();
}

int canele_lane_try_flush(canele_lane_t* lane) try {
  constexpr const char* call = "canele_lane_try_flush";
  if (lane == nullptr) return missing(call, "lane");
  if (fork::in_child) return reject_in_child(call);
  return post::flush_at_once(lane_of(lane)) ? 1 : 0;
} catch (...) {
  return caught();
}

int canele_notification_open(canele_engine_t* engine, const canele_completion_t* then, uint32_t* slot) try {
  constexpr const char* call = "canele_notification_open";
  if (engine == nullptr || then == nullptr || slot == nullptr) return missing(call, "engine, then and slot");
  if (const int code = check_completion(*then, call); code != CANELE_OK) return code;
  if (then->kind == CANELE_COMPLETE_POLL || then->kind == CANELE_COMPLETE_NONE)
    return error(CANELE_EINVAL, call, "the completion is POLL or NONE; expected: one that is delivered");
  Engine& e = engine_of(engine);
  if (const int code = enable(e, call); code != CANELE_OK) return code;
  {
    const EngineGuard guard(e);
    auto& slots = e.one_sided.slots;
    std::size_t index = 0;
    while (index < slots.size() && slots[index].open) ++index;
    if (index == slots.size()) slots.emplace_back();
    slots[index] = {*then, true};
    *slot = static_cast<std::uint32_t>(index + 1);
  }
  make_accessible(e);
  return CANELE_OK;
} catch (...) {
  return caught();
}

int canele_notification_close(canele_engine_t* engine, uint32_t slot) try {
  constexpr const char* call = "canele_notification_close";
  if (engine == nullptr) return missing(call, "engine");
  if (fork::in_child) return reject_in_child(call);
  Engine& e = engine_of(engine);
  const EngineGuard guard(e);
  auto& slots = e.one_sided.slots;
  if (slot == 0 || slot > slots.size() || !slots[slot - 1].open)
    return error(CANELE_EINVAL, std::string(call) + ": slot " + std::to_string(slot) + " is not open");
  slots[slot - 1].open = false;
  e.accessible.fetch_sub(1, std::memory_order_relaxed);
  return CANELE_OK;
} catch (...) {
  return caught();
}

// ---- operations -----------------------------------------------------------------------------------------------------

int canele_put(canele_key_t* key, uint64_t offset, const canele_data_t* data, const canele_access_options_t* options,
               canele_request_t* request) try {
  constexpr const char* call = "canele_put";
  if (accesses_at_once<RmaOp::put>(key, offset, data, options, request,
                                   [&](std::byte* at) { post::put_mapped(at, *data); }))
    return CANELE_OK;
  if (key == nullptr) return missing(call, "key");
  AccessOptions read;
  int code = check_data(data, call);
  if (code == CANELE_OK) code = read_options(options, true, call, &read);
  if (code != CANELE_OK) return code;
  RemoteKey& k = key_of(key);
  if ((code = check_host_data(engine_of(*k.context), *data, call)) != CANELE_OK) return code;
  Access access{call, AccessKind::put, engine_of(*k.context), k.rank, &k, offset, *data, read.slot, read.immediate};
  code = check_access(read, CANELE_ACCESS_WRITE, access);
  return code != CANELE_OK ? code : post_access(access, read, request);
} catch (...) {
  return caught();
}

int canele_get(canele_key_t* key, uint64_t offset, const canele_data_t* data, const canele_access_options_t* options,
               canele_request_t* request) try {
  constexpr const char* call = "canele_get";
  if (accesses_at_once<RmaOp::get>(key, offset, data, options, request,
                                   [&](std::byte* at) { post::get_mapped(at, *data); }))
    return CANELE_OK;
  if (key == nullptr) return missing(call, "key");
  AccessOptions read;
  int code = check_data(data, call);
  if (code == CANELE_OK) code = read_options(options, false, call, &read);
  if (code != CANELE_OK) return code;
  RemoteKey& k = key_of(key);
  if ((code = check_host_data(engine_of(*k.context), *data, call)) != CANELE_OK) return code;
  Access access{call, AccessKind::get, engine_of(*k.context), k.rank, &k, offset, *data};
  code = check_access(read, CANELE_ACCESS_READ, access);
  return code != CANELE_OK ? code : post_access(access, read, request);
} catch (...) {
  return caught();
}

int canele_atomic(canele_key_t* key, uint64_t offset, enum canele_atomic_operation operation, size_t size,
                  uint64_t operand, uint64_t compare, void* before, const canele_access_options_t* options,
                  canele_request_t* request) try {
  constexpr const char* call = "canele_atomic";
  if (key == nullptr) return missing(call, "key");
  const int kind = static_cast<int>(operation);
  if (kind < CANELE_ATOMIC_READ || kind > CANELE_ATOMIC_COMPARE_AND_SWAP || (size != 4 && size != 8) ||
      offset % size != 0) {
    return error(CANELE_EINVAL, std::string(call) + ": operation " + std::to_string(kind) + ", size " +
                                    std::to_string(size) + ", offset " + std::to_string(offset) +
                                    "; expected: one of enum canele_atomic_operation, 4 or 8, a multiple of the size");
  }
  if (options == nullptr && accesses_mapped(key, offset, size, CANELE_ACCESS_ATOMIC, request, [&](std::byte* at) {
        post::apply_mapped(at, {operation, size, operand, compare}, before);
      }))
    return CANELE_OK;
  AccessOptions read;
  int code = read_options(options, false, call, &read);
  if (code != CANELE_OK) return code;
  RemoteKey& k = key_of(key);
  if ((code = check_host_memory(engine_of(*k.context), before, call)) != CANELE_OK) return code;
  Access access{call, AccessKind::atomic, engine_of(*k.context), k.rank, &k, offset, {size, before, nullptr, nullptr}};
  access.immediate = operand;
  access.compare = compare;
  access.code = static_cast<unsigned>(kind);
  code = check_access(read, CANELE_ACCESS_ATOMIC, access);
  return code != CANELE_OK ? code : post_access(access, read, request);
} catch (...) {
  return caught();
}

int canele_accumulate(canele_key_t* key, uint64_t offset, const canele_data_t* data, int operation,
                      enum canele_element element, void* before, const canele_access_options_t* options,
                      canele_request_t* request) try {
  constexpr const char* call = "canele_accumulate";
  if (key == nullptr) return missing(call, "key");
  if (!operators::accumulates(operation, static_cast<unsigned>(element))) {
    return error(CANELE_EINVAL, std::string(call) + ": operation " + std::to_string(operation) + " of element " +
                                    std::to_string(static_cast<unsigned>(element)) +
                                    "; expected: one that enum canele_operation or canele_accumulate_operation has "
                                    "for an enum canele_element");
  }
  AccessOptions read;
  int code = check_data(data, call);
  if (code == CANELE_OK) code = read_options(options, false, call, &read);
  if (code != CANELE_OK) return code;
  if (data->length % operators::size_of(element) != 0) {
    return error(CANELE_EINVAL, std::string(call) + ": data has " + std::to_string(data->length) +
                                    " bytes; expected: a multiple of " + std::to_string(operators::size_of(element)));
  }
  RemoteKey& k = key_of(key);
  if ((code = check_host_data(engine_of(*k.context), *data, call)) != CANELE_OK) return code;
  if ((code = check_host_memory(engine_of(*k.context), before, call)) != CANELE_OK) return code;
  Access access{call, AccessKind::accumulate, engine_of(*k.context), k.rank, &k, offset, *data};
  access.code = static_cast<unsigned>(operation);
  access.element = element;
  access.before = static_cast<std::byte*>(before);
  code = check_access(read, CANELE_ACCESS_ATOMIC, access);
  return code != CANELE_OK ? code : post_access(access, read, request);
} catch (...) {
  return caught();
}

namespace {

int post_to_rank(const char* call, AccessKind operation, canele_engine_t* engine, int rank,
                 const canele_access_options_t* options, canele_request_t* request) {
  const bool notifies = operation == AccessKind::notify;
  if (engine == nullptr) return missing(call, "engine");
  AccessOptions read;
  if (const int code = read_options(options, notifies, call, &read); code != CANELE_OK) return code;
  if (notifies && read.slot == 0) return missing(call, "options->slot");
  if (const int code = check_peer(engine, rank, call); code != CANELE_OK) return code;
  Access access{call, operation, engine_of(engine), rank, nullptr, 0, {}, read.slot, read.immediate};
  const int code = set_strides(read, access);
  return code != CANELE_OK ? code : post_access(access, read, request);
}

}  // namespace

int canele_notify(canele_engine_t* engine, int rank, const canele_access_options_t* options,
                  canele_request_t* request) try {
  return post_to_rank("canele_notify", AccessKind::notify, engine, rank, options, request);
} catch (...) {
  return caught();
}

int canele_flush(canele_engine_t* engine, int rank, const canele_access_options_t* options,
                 canele_request_t* request) try {
  if (options == nullptr && engine != nullptr && flushes_at_once(engine_of(engine), rank, request)) return CANELE_OK;
  return post_to_rank("canele_flush", AccessKind::flush, engine, rank, options, request);
} catch (...) {
  return caught();
}
