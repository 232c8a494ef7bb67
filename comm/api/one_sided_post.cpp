// SPDX-License-Identifier: BSD-3-Clause
//
// The post of a one-sided operation.
#include "comm/api/one_sided_post.hpp"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "comm/api/posted_use.hpp"
#include "comm/post/direct_access.hpp"
#include "comm/post/mapped_access.hpp"
#include "comm/post/put.hpp"
#include "comm/protocol/one_sided_chunk.hpp"

namespace canele::comm::api {
namespace {

using one_sided::AccessKind;
using one_sided::Lane;
using one_sided::RemoteKey;

bool notifies(const Access& access) { return access.operation == AccessKind::notify || access.slot != 0; }

one_sided::AtomicOperation atomic_of(const Access& access) {
  return {static_cast<canele_atomic_operation>(access.code), access.data.length, access.immediate, access.compare};
}

operators::Accumulation accumulation_of(const Access& access) {
  return {static_cast<int>(access.code), access.element};
}

/// Sets the session, and the lane if the program gives none. Returns false if the engine has no session yet.
bool find_session(Access& access, AccessOptions& options) {
  assume_lock();  // both are written once, the session last
  access.session = access.engine.one_sided.session.load(std::memory_order_acquire);  // release: enable()
  if (options.lane == nullptr && access.session != nullptr) options.lane = access.engine.one_sided.default_lane;
  return access.session != nullptr;
}

bool is_large(const Access& access) {
  assume_lock();  // as in find_session()
  return one_sided::is_large(access.engine, access.operation, access.data.length);
}

bool access_at_once(const Access& access, Lane& lane);
bool notify_at_once(const Access& access, Lane& lane);
bool accesses_directly(const Access& access, Lane& lane);
bool submit_first_parts(Access& access, const AccessOptions& options, Lane& lane);
void submit_access(const Access& access, const AccessOptions& options, bool watched, Lane& lane, Request& request);

}  // namespace

int read_options(const canele_access_options_t* options, bool may_notify, const char* call, AccessOptions* out) {
  if (options == nullptr) return CANELE_OK;
  int code = check_size(options, options->struct_size, sizeof *options, call, "canele_access_options_t");
  if (code == CANELE_OK) code = check_completion(options->done, call);
  if (code != CANELE_OK) return code;
  if (!may_notify && (options->slot != 0 || options->immediate != 0))
    return error(CANELE_EINVAL, call, "slot and immediate are given; expected: 0");
  *out = {options->done,      options->lane != nullptr ? &lane_of(options->lane) : nullptr,
          options->priority,  options->slot,
          options->immediate, options->block,
          options->stride};
  return CANELE_OK;
}

int set_strides(const AccessOptions& options, Access& access) {
  if ((options.block | options.stride) == 0) [[likely]]
    return CANELE_OK;
  constexpr std::uint64_t most = UINT32_MAX;
  const bool fits = options.block <= most && options.stride <= most;
  access.strides = {static_cast<std::uint32_t>(options.block), static_cast<std::uint32_t>(options.stride)};
  if (access.operation <= AccessKind::get && fits && one_sided::is_shape_of(access.strides, access.data.length))
    return CANELE_OK;
  return error(CANELE_EINVAL, std::string(access.call) + ": block and stride are " + std::to_string(options.block) +
                                  " and " + std::to_string(options.stride) + ", for " +
                                  std::to_string(access.data.length) +
                                  " bytes; expected: of a put or get, a part of the data, and at least as much");
}

int check_access(const AccessOptions& options, std::uint32_t wanted, Access& access) {
  if (const int code = set_strides(options, access); code != CANELE_OK) return code;
  const RemoteKey& key = *access.key;
  const std::uint64_t length = one_sided::extent_of(access.strides, access.data.length);
  if (allows(key, access.offset, length, wanted)) return CANELE_OK;
  if ((key.access & wanted) == 0)
    return error(CANELE_EACCESS, std::string(access.call) + ": the key does not allow this kind of access");
  return error(CANELE_EACCESS, std::string(access.call) + ": " + std::to_string(length) + " bytes at offset " +
                                   std::to_string(access.offset) + "; the memory has " + std::to_string(key.length) +
                                   " bytes");
}

int post_access(Access access, AccessOptions options, canele_request_t* request) {
  Engine& engine = access.engine;
  if (fork::in_child) return reject_in_child(access.call);
  if (!find_session(access, options)) {
    if (const int code = enable(engine, access.call); code != CANELE_OK) return code;
    find_session(access, options);
  }
  Lane& lane = *options.lane;
  if (lane.context != &engine)
    return error(CANELE_EINVAL, std::string(access.call) + ": the lane belongs to another engine, or is closed");
  const bool watched =
      request != nullptr || (options.done.kind != CANELE_COMPLETE_POLL && options.done.kind != CANELE_COMPLETE_NONE);
  if (!watched) {
    if (notifies(access) ? notify_at_once(access, lane) : access_at_once(access, lane)) return CANELE_OK;
    options.done.kind = CANELE_COMPLETE_NONE;
  }
  PostedUse use;
  if (const int code = use.begin(public_of(*access.session), request, options.done, access.rank, access.call);
      code != CANELE_OK)
    return code;
  if (notifies(access)) {
    if (access_at_once(access, lane)) {  // the data is there; its notification goes by a packet
      access.operation = AccessKind::notify;
      access.key = nullptr;
    }
  } else if (watched && is_unwatched(use.request()) && may_deliver_now(options.done) && access_at_once(access, lane)) {
    end_as_send(use.request(), *access.session, access.rank, access.offset, access.data.length);
    return use.ended(false);
  }
  if (const int code = check_memory(access.call); code != CANELE_OK) return use.undo(code);
  if (is_large(access) && (access.transfer = new (std::nothrow) one_sided::Transfer) == nullptr)
    return use.undo(error(CANELE_ENOMEM, access.call, "no memory for a large message"));
  if (access.operation == AccessKind::accumulate && !submit_first_parts(access, options, lane))
    return use.undo(error(CANELE_ENOMEM, access.call, "no memory for its requests"));
  if (watched) use.listen_first();
  submit_access(access, options, watched, lane, use.request());
  return CANELE_OK;
}

namespace {

/// Makes an operation that nothing stands in the way of. Returns false, with nothing done, if it has to be posted.
bool access_at_once(const Access& access, Lane& lane) {
  if (access.operation == AccessKind::flush) return post::flush_at_once(lane);
  if (access.key == nullptr) return false;
  std::byte* const base = post::mapped_memory(*access.key, lane);
  if (base == nullptr) return accesses_directly(access, lane);
  std::byte* const at = base + access.offset;
  if (one_sided::is_strided(access.strides)) {
    post::access_mapped({at, access.strides, access.data.length}, access.data, access.operation == AccessKind::put);
  } else if (access.operation == AccessKind::put) {
    post::put_mapped(at, access.data);
  } else if (access.operation == AccessKind::get) {
    post::get_mapped(at, access.data);
  } else if (access.operation == AccessKind::atomic) {
    post::apply_mapped(at, atomic_of(access), access.data.base);
  } else {
    return post::accumulate_mapped(at, access.data, accumulation_of(access), access.before);
  }
  return true;
}

/// Sends a notification, or a short put that notifies, if nothing stands in its way. Returns false, with nothing sent,
/// if it has to be posted.
bool notify_at_once(const Access& access, Lane& lane) {
  constexpr std::uint64_t longest = 4096;  // is copied under the engine's lock
  const canele_data_t& data = access.data;
  if (one_sided::is_strided(access.strides) || data.segments != nullptr || data.length > longest) return false;
  const bool puts = access.key != nullptr;
  std::byte* const mapped = puts ? post::mapped_memory(*access.key, lane) : nullptr;
  if (puts && mapped == nullptr && post::may_go_directly(*access.key, lane, data.length, access.slot)) return false;
  const wire::Notification fields{access.immediate, data.length, access.offset, access.slot, 0};
  const RemoteKey* const along = mapped == nullptr ? access.key : nullptr;
  return post::notify_at_once(access.engine, {access.rank, lane, along, access.offset, data.base, data.length, fields},
                              mapped != nullptr ? mapped + access.offset : nullptr, data);
}

/// Makes a put or get by this process itself, if the target permits. Returns false if it has to be posted.
bool accesses_directly(const Access& access, Lane& lane) {
  if (access.operation > AccessKind::get || one_sided::is_strided(access.strides) ||
      !post::may_go_directly(*access.key, lane, access.data.length, access.slot))
    return false;
  const drivers::RmaOp op = access.operation == AccessKind::put ? drivers::RmaOp::put : drivers::RmaOp::get;
  return post::access_directly(*access.key, lane, op, access.offset, access.data);
}

/// Returns the length of the longest accumulate that fits a packet: a multiple of the size of every element.
std::size_t longest_part(const Engine& engine) {
  constexpr std::size_t largest_element = 32;
  assume_lock();  // as in find_session()
  const std::size_t limit = std::min<std::size_t>(engine.one_sided.piece_limit, one_sided::longest_accumulate);
  return limit / largest_element * largest_element;
}

/// Posts all parts of a long accumulate but the last, as operations of the library's own. The access becomes the last
/// part. Its error is that of all: their checks are the same, and a key that is revoked stays so. Returns false, with
/// nothing posted, if there is no memory for the requests.
bool submit_first_parts(Access& access, const AccessOptions& options, Lane& lane) {
  const std::size_t part = longest_part(access.engine);
  RequestPool& pool = access.engine.request_pool;
  PooledRequest* requests = nullptr;
  for (std::size_t left = access.data.length; left > part; left -= part) {
    PooledRequest* const one = pool.take();
    if (one == nullptr) {
      while (requests != nullptr) pool.give_back(*std::exchange(requests, requests->next_free));
      return false;
    }
    one->next_free = std::exchange(requests, one);
  }
  const std::size_t end = access.data.length;
  while (requests != nullptr) {
    PooledRequest& request = *std::exchange(requests, requests->next_free);
    access.data.length = access.start + part;
    submit_access(access, options, false, lane, request);
    access.start += part;
    access.offset += part;
    if (access.before != nullptr) access.before += part;
  }
  access.data.length = end;
  return true;
}

/// Sets the fields that depend on the kind of the operation.
void set_what(const Access& access, Request& request) {
  switch (access.operation) {
    case AccessKind::atomic:
      request.slot = one_sided::pack_code(access.code, static_cast<unsigned>(access.data.length));
      request.compare = access.compare;
      break;
    case AccessKind::accumulate:
      request.slot = one_sided::pack_code(access.code, access.element);
      request.before = access.before;
      request.moved = access.start;
      break;
    default:
      request.transfer = access.transfer;
  }
}

/// Hands an operation to the engine.
void submit_access(const Access& access, const AccessOptions& options, bool watched, Lane& lane, Request& request) {
  Engine& engine = access.engine;
  prepare_send(request, *access.session, access.rank, access.offset, access.data, lane.number);
  request.role = Request::InternalRole::one_sided;
  request.operation = static_cast<std::uint8_t>(access.operation);
  request.synchronous = watched;
  request.key = access.key;
  request.slot = access.slot;
  request.immediate = access.immediate;
  request.strides = access.strides;
  set_what(access, request);
  request.item.priority = options.priority;
  request.PostOp::kind = OpKind::access;
  post::note_posted(lane, access.operation == AccessKind::flush);
  lane.all.fetch_add(1, std::memory_order_relaxed);  // read by the threads that post to this lane, in their order
  if (access.key != nullptr) lane.effects.fetch_add(1, std::memory_order_relaxed);
  engine.submit(static_cast<PostOp&>(request));
  engine.after_submit(access.data.length);
}

}  // namespace
}  // namespace canele::comm::api
