// SPDX-License-Identifier: BSD-3-Clause
//
// Posts that say where their completion goes; sends without a request; room and limits.
//
// Any thread. A post goes one of three ways:
//
//   send, not watched yet ──sent at once──▶ CANELE_DONE (MAY_FINISH), or the completion is delivered here
//        └─not at once──▶ registered, then posted        an event of any thread finds the registration
//   MAY_FINISH ─▶ posted, then registered unless it has ended
#include <cstring>

#include "comm/api/api.hpp"
#include "comm/api/device_use.hpp"
#include "comm/api/posted_use.hpp"
#include "comm/post/send.hpp"

namespace canele::comm::api {
namespace {

/// The options of a post, checked.
struct PostOptions {
  canele_completion_t done{};
  SendOptions send;
  bool may_finish = false, tries = false;
};

/// Reads the options of a post. `known`: the flags that the call has.
int read_post_options(const canele_post_options_t* options, std::uint32_t known, const char* call, PostOptions* out) {
  if (options == nullptr) return CANELE_OK;
  int code = check_size(options, options->struct_size, sizeof *options, call, "canele_post_options_t");
  if (code == CANELE_OK) code = check_completion(options->done, call);
  if (code != CANELE_OK) return code;
  if ((options->flags & ~known) != 0) {
    return error(CANELE_EINVAL, std::string(call) + ": flags are " + std::to_string(options->flags) +
                                    "; expected: bits of " + std::to_string(known));
  }
  out->done = options->done;
  out->send = {options->priority, 0, options->header};
  if ((options->flags & CANELE_POST_SYNCHRONOUS) != 0) out->send.flags = CANELE_SEND_SYNCHRONOUS;
  out->may_finish = (options->flags & CANELE_POST_MAY_FINISH) != 0;
  out->tries = (options->flags & CANELE_POST_TRY) != 0;
  return CANELE_OK;
}

/// Posts a send if there is room for it. The room is looked for and taken under one hold of the lock.
bool submit_if_room(Session& session, int destination, std::uint64_t tag, const canele_data_t& data,
                    const SendOptions& options, Request& request) {
  Engine& engine = engine_of(*session.context);
  engine.lock_for_callback();
  const bool room = send_path::has_room(engine, destination, data.length);
  if (room) {
    fill_send(session, destination, tag, data, options, request);
    send_path::on_send_posted(engine, request);
  }
  engine.unlock();
  engine.after_submit(data.length);
  return room;
}

[[gnu::cold]] int reject_full(int destination, const char* call) {
  return error(CANELE_EAGAIN, std::string(call) + ": no room towards rank " + std::to_string(destination) +
                                  " now; make progress, then try again");
}

/// Returns whether a send would have to wait for an earlier one that is read from a device.
bool waits_for_device(const Session& session, int destination, std::uint64_t tag) {
  Engine& engine = engine_of(*session.context);
  return device::present(engine) && device::of(engine).must_wait(session, destination, tag);
}

/// Posts a checked send, which could not be sent at once.
int post_send(Session& session, int destination, std::uint64_t tag, const canele_data_t& data,
              const PostOptions& options, PostedUse& use) {
  constexpr const char* call = "canele_post_send";
  if (!options.may_finish) use.listen_first();
  if (concerns_devices(*session.context, data)) [[unlikely]] {
    if (options.tries && waits_for_device(session, destination, tag)) return use.undo(reject_full(destination, call));
    const std::optional<int> code = send_by_device(session, destination, tag, data, options.send, use.request(), call);
    if (code.has_value() && *code != CANELE_OK) return use.undo(*code);
    if (code.has_value()) return options.may_finish ? use.listen_after(call) : CANELE_OK;
  }
  if (!options.tries) {
    submit_send(session, destination, tag, data, options.send, use.request());
  } else if (!submit_if_room(session, destination, tag, data, options.send, use.request())) {
    return use.undo(reject_full(destination, call));
  }
  return options.may_finish ? use.listen_after(call) : CANELE_OK;
}

}  // namespace

int check_peer(canele_engine_t* engine, int peer, const char* call) {
  if (engine == nullptr) return error(CANELE_EINVAL, call, "engine is NULL");
  if (fork::in_child) return reject_in_child(call);
  if (peer >= 0 && peer < engine_of(engine).size) return CANELE_OK;
  return error(CANELE_ERANK, std::string(call) + ": rank " + std::to_string(peer) + "; expected: 0 to " +
                                 std::to_string(engine_of(engine).size - 1));
}

int inject(Session& session, Session& told, int destination, std::uint64_t tag, const Injected& what,
           const char* call) {
  Engine& engine = engine_of(*session.context);
  if (destination >= 0 && destination < engine.size && session.posts_fast && engine.try_lock_to_post()) {
    const bool sent = send_path::try_send_fast(engine, destination, {session, tag, what.buffer, what.length});
    engine.unlock_idle();
    if (sent) return CANELE_OK;
  }
  if (device::present(engine)) [[unlikely]] {
    if (const int code = check_host_memory(engine, what.buffer, call); code != CANELE_OK) return code;
    if (waits_for_device(session, destination, tag)) return reject_full(destination, call);
  }
  PostOptions options;
  options.done.kind = CANELE_COMPLETE_NONE;
  options.send.header = what.header;
  PostedUse use;
  int code = use.begin(public_of(session), nullptr, options.done, destination, call);
  if (code != CANELE_OK) return code;
  code = check_posted_send(&use.request(), &session, destination, what.length, call);
  if (code != CANELE_OK) return use.undo(code);
  auto& request = static_cast<PooledRequest&>(use.request());
  request.errors = {told.on_error, told.on_error_argument, public_of(told), destination};
  if (what.length != 0) std::memcpy(request.payload, what.buffer, what.length);
  use.listen_first();
  const canele_data_t copy = canele_data_contiguous(request.payload, what.length);
  const bool posted = submit_if_room(session, destination, tag, copy, options.send, request);
  return posted ? CANELE_OK : use.undo(reject_full(destination, call));
}

}  // namespace canele::comm::api

using namespace canele::comm;
using namespace canele::comm::api;

int canele_post_send(canele_session_t* session, int destination, uint64_t tag, const canele_data_t* data,
                     const canele_post_options_t* options, canele_request_t* request) try {
  constexpr const char* call = "canele_post_send";
  PostOptions read;
  int code = check_data(data, call);
  if (code == CANELE_OK)
    code = read_post_options(options, CANELE_POST_SYNCHRONOUS | CANELE_POST_MAY_FINISH | CANELE_POST_TRY, call, &read);
  if (code == CANELE_OK) code = check_header(read.send.header, data->length, call);
  PostedUse use;
  if (code == CANELE_OK) code = use.begin_send(session, request, read.done, destination, call);
  if (code != CANELE_OK) return code;
  Session& s = session_of(session);
  const bool plain = data->segments == nullptr && read.send.flags == 0;  // all of it leaves, so its header, too
  if (plain && post::may_send_at_once(s, destination, data->length, use.request()) &&
      (read.may_finish || may_deliver_now(read.done)) &&
      post::send_at_once(s, destination, tag, data->base, data->length, use.request())) {
    return use.ended(read.may_finish);
  }
  code = check_posted_send(&use.request(), &s, destination, data->length, call);
  return code != CANELE_OK ? use.undo(code) : canele::comm::api::post_send(s, destination, tag, *data, read, use);
} catch (...) {
  return caught();
}

int canele_post_receive(canele_session_t* session, int source, uint64_t tag, uint64_t mask, const canele_data_t* data,
                        const canele_post_options_t* options, canele_request_t* request) try {
  constexpr const char* call = "canele_post_receive";
  PostOptions read;
  int code = data != nullptr ? check_data(data, call) : CANELE_OK;
  if (code == CANELE_OK) code = read_post_options(options, CANELE_POST_MAY_FINISH, call, &read);
  if (code == CANELE_OK && (read.send.priority != 0 || read.send.header != 0))
    code = error(CANELE_EINVAL, call, "a receive has no priority and no header; expected: 0");
  if (code == CANELE_OK && data == nullptr && request == nullptr)
    code = error(CANELE_EINVAL, call, "data and request are NULL; expected: one of them at least");
  PostedUse use;
  if (code == CANELE_OK) code = use.begin(session, request, read.done, source, call);
  if (code != CANELE_OK) return code;
  if (!read.may_finish) use.listen_first();
  code = receive(&session_of(session), source, tag, mask, data != nullptr ? *data : canele_data_t{}, data == nullptr,
                 &use.request());
  if (code != CANELE_OK) return use.undo(code);
  return read.may_finish ? use.listen_after(call) : CANELE_OK;
} catch (...) {
  return caught();
}

int canele_inject(canele_session_t* session, int destination, uint64_t tag, const void* buffer, size_t length) try {
  constexpr const char* call = "canele_inject";
  if (session == nullptr || (buffer == nullptr && length != 0)) return missing(call, "session and buffer");
  if (length > inject_limit)
    return error(CANELE_EINVAL, std::string(call) + ": " + std::to_string(length) + " bytes; expected: at most " +
                                    std::to_string(inject_limit));
  return inject(session_of(session), session_of(session), destination, tag, {buffer, length, 0}, call);
} catch (...) {
  return caught();
}

int canele_send_room(canele_session_t* session, int destination, size_t length) try {
  if (session == nullptr) return error(CANELE_EINVAL, "canele_send_room: session is NULL");
  Engine& engine = engine_of(*session_of(session).context);
  if (const int code = check_peer(public_of(engine), destination, "canele_send_room"); code != CANELE_OK) return code;
  if (length > PTRDIFF_MAX) {
    return error(CANELE_EINVAL, "canele_send_room: " + std::to_string(length) +
                                    " bytes exceed the address space; expected: at most PTRDIFF_MAX");
  }
  engine.lock_for_callback();
  const bool room = send_path::has_room(engine, destination, length);
  engine.unlock();
  return room ? 1 : 0;
} catch (...) {
  return caught();
}

int canele_limit(canele_engine_t* engine, int peer, enum canele_limit_kind kind, size_t* value) try {
  if (const int code = check_peer(engine, peer, "canele_limit"); code != CANELE_OK) return code;
  if (value == nullptr) return error(CANELE_EINVAL, "canele_limit: value is NULL");
  Engine& e = engine_of(engine);
  switch (static_cast<int>(kind)) {
    case CANELE_LIMIT_INJECT:
      *value = inject_limit;
      return CANELE_OK;
    case CANELE_LIMIT_EAGER: {
      e.lock_for_callback();
      const Peer* const known = e.peers[peer];
      *value = known != nullptr ? send_path::eager_limit(e, *known) : send_path::eager_limit(e);
      e.unlock();
      return CANELE_OK;
    }
    case CANELE_LIMIT_HEADER:
      *value = CANELE_HEADER_MAX;
      return CANELE_OK;
    case CANELE_LIMIT_AM_HEADER:
      *value = CANELE_AM_HEADER_MAX;
      return CANELE_OK;
    default:
      return error(CANELE_EINVAL, "canele_limit: kind is " + std::to_string(static_cast<int>(kind)) +
                                      "; expected: one of enum canele_limit_kind");
  }
} catch (...) {
  return caught();
}

int canele_session_on_error(canele_session_t* session, canele_error_fn callback, void* argument) try {
  if (session == nullptr) return error(CANELE_EINVAL, "canele_session_on_error: session is NULL");
  if (fork::in_child) return reject_in_child("canele_session_on_error");
  Session& s = session_of(session);
  if (!s.open) return error(CANELE_ESTATE, "session \"" + s.label + "\" is closed");
  s.on_error_argument = argument;
  s.on_error = callback;
  return CANELE_OK;
} catch (...) {
  return caught();
}
