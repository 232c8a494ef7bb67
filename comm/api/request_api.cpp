// SPDX-License-Identifier: BSD-3-Clause
//
// Requests of the C ABI: send, receive, receives without a buffer, cancel, probe, events, completion queues.
//
// Any thread. The arguments of a call are checked here, before anything is queued. Later errors are reported by the
// status only.
#include <algorithm>
#include <new>

#include "comm/api/api.hpp"
#include "comm/api/device_use.hpp"
#include "comm/post/send.hpp"
#include "comm/protocol/receive.hpp"
#include "comm/protocol/receive_eager.hpp"

namespace canele::comm::api {
namespace {

constexpr std::size_t longest_message = PTRDIFF_MAX;

// The send comes first, its steps in the order in which they run.
[[gnu::always_inline]] inline int send_fast(Session& session, int destination, std::uint64_t tag, const void* buffer,
                                            std::size_t length, Request& request);
[[gnu::noinline]] int post_after_all(Request& request, const void* buffer);
[[gnu::noinline]] int post_contiguous(Session* session, int destination, std::uint64_t tag, const void* buffer,
                                      std::size_t length, Request* request);
[[gnu::noinline]] int post_send(Session* session, int destination, std::uint64_t tag, const canele_data_t& data,
                                const SendOptions& options, Request* request);
[[gnu::cold]] int reject_buffer(const char* call, std::size_t length);
[[gnu::cold]] int reject_length(const char* call, std::size_t length);
[[gnu::cold]] int reject_destination(const Engine& engine, int destination);

}  // namespace

}  // namespace canele::comm::api

using namespace canele::comm;
using namespace canele::comm::api;

int canele_isend(canele_session_t* session, int destination, uint64_t tag, const void* buffer, size_t length,
                 canele_request_t* request) try {
  if (length != 0 && buffer == nullptr) [[unlikely]]
    return reject_buffer("canele_isend", length);
  if (session != nullptr && request != nullptr &&
      post::may_send_at_once(session_of(session), destination, length, request_of(request))) [[likely]] {
    return send_fast(session_of(session), destination, tag, buffer, length, request_of(request));
  }
  return post_contiguous(&session_of(session), destination, tag, buffer, length, &request_of(request));
} catch (...) {
  return caught();
}

namespace canele::comm::api {
namespace {

/// Sends an eager message at once if its path is clear; otherwise posts the send.
[[gnu::always_inline]] inline int send_fast(Session& session, int destination, std::uint64_t tag, const void* buffer,
                                            std::size_t length, Request& request) {
  if (post::send_at_once(session, destination, tag, buffer, length, request)) return CANELE_OK;
  return post_after_all(request, buffer);
}

/// Posts a send that could not be sent on the fast path, although its outcome has already been written to the request.
[[gnu::noinline]] int post_after_all(Request& request, const void* buffer) {
  return post_contiguous(request.session, request.rank, request.status_tag, buffer, request.status_length, &request);
}

/// Out of line: keeps its stack frame off the fast path.
[[gnu::noinline]] int post_contiguous(Session* session, int destination, std::uint64_t tag, const void* buffer,
                                      std::size_t length, Request* request) {
  return post_send(session, destination, tag, canele_data_contiguous(buffer, length), {}, request);
}

[[gnu::noinline]] int post_send(Session* session, int destination, std::uint64_t tag, const canele_data_t& data,
                                const SendOptions& options, Request* request) {
  if (const int code = check_posted_send(request, session, destination, data.length, "canele_isend"); code != CANELE_OK)
    return code;
  if (concerns_devices(*session->context, data)) [[unlikely]] {
    const std::optional<int> code = send_by_device(*session, destination, tag, data, options, *request, "canele_isend");
    if (code.has_value()) return *code;
    if (data.segments == nullptr && options.flags == 0 && options.header == 0 &&
        post::host_may_send_at_once(*session, destination, data.length, *request) &&
        post::send_at_once(*session, destination, tag, data.base, data.length, *request))
      return CANELE_OK;
  }
  submit_send(*session, destination, tag, data, options, *request);
  return CANELE_OK;
}

std::string range_of(const Engine& engine) { return "ranks run from 0 to " + std::to_string(engine.size - 1); }

int read_options(const canele_send_options_t* options, std::size_t length, SendOptions* out) {
  if (options == nullptr) return CANELE_OK;
  const int code =
      check_size(options, options->struct_size, sizeof *options, "canele_isend_data", "canele_send_options_t");
  if (code != CANELE_OK) return code;
  if ((options->flags & ~static_cast<std::uint32_t>(CANELE_SEND_SYNCHRONOUS)) != 0) {
    return error(CANELE_EINVAL, "canele_isend_data: unknown flags " + std::to_string(options->flags));
  }
  *out = {options->priority, options->flags, options->header};
  return check_header(options->header, length, "canele_isend_data");
}

[[gnu::cold]] int reject_length(const char* call, std::size_t length) {
  return error(CANELE_EINVAL, std::string(call) + ": " + std::to_string(length) +
                                  " bytes exceed the address space; expected: at most PTRDIFF_MAX");
}

[[gnu::cold]] int reject_destination(const Engine& engine, int destination) {
  if (fork::in_child) return reject_in_child("send");
  return error(CANELE_ERANK, "send to rank " + std::to_string(destination) + ": " + range_of(engine));
}

[[gnu::cold]] int reject_source(const Engine& engine, int source) {
  if (fork::in_child) return reject_in_child("receive");
  return error(CANELE_ERANK,
               "receive from rank " + std::to_string(source) + ": " + range_of(engine) + ", or CANELE_ANY_SOURCE");
}

[[gnu::cold]] int reject_buffer(const char* call, std::size_t length) {
  if (length > longest_message) return reject_length(call, length);
  return error(CANELE_EINVAL, call, "length is not 0 but buffer is NULL");
}

/// Accepts a receive, or adds it to the receive prefetch. Called under the lock.
[[gnu::always_inline]] inline receive_path::Accepted accept_or_defer(Engine& engine,
                                                                     const Posting& posting) CANELE_UNDER_LOCK {
  engine.counters.add(Counter::lock_taken);
  const bool begun = !engine.receive_prefetch.empty();
  const bool many = begun ? engine.matcher.is_large() : engine.matcher.is_large_for_posts();
  if ((many || CANELE_BUGGIFY(pipeline_of_few)) && engine.may_look_up_later() &&
      ReceivePrefetch::takes(*posting.request, posting.data.length)) [[unlikely]] {
    engine.receive_prefetch.add(engine, posting);
    return receive_path::Accepted::other;
  }
  if (begun) [[unlikely]]
    engine.receive_prefetch.drain(engine);
  return receive_path::accept_fast(engine, posting);
}

/// Posts a receive of host memory. Inline, so that `data` stays in registers: it is not read back from stores that are
/// still in flight.
[[gnu::always_inline]] inline int post_to_host(Session* session, int source, std::uint64_t tag, std::uint64_t mask,
                                               const canele_data_t& data, bool unbound, Request* request) {
  Engine& engine = engine_of(*session->context);
  if (source < CANELE_ANY_SOURCE || source >= engine.size) [[unlikely]]
    return reject_source(engine, source);
  prepare_outcome(*request, *session, Request::Kind::receive);
  request->unbound = unbound;
  transition(*request, Request::Stage::posted);
  const Posting posting{request, session, tag & mask, mask, source, data};
  const bool quiet = request->word.load(std::memory_order_relaxed) == 0;  // no callback is due, whatever happens
  if (engine.try_lock_to_post()) {
    const receive_path::Accepted accepted = accept_or_defer(engine, posting);
    const bool idle = engine.unlock_idle();
    if (idle && accepted == receive_path::Accepted::complete && quiet) return CANELE_OK;
    if (idle && accepted == receive_path::Accepted::waits) {
      engine.notify_on_demand_thread();
      return CANELE_OK;
    }
  } else {
    receive_path::fill(engine, posting);
    request->PostOp::kind = OpKind::receive;
    engine.submit(static_cast<PostOp&>(*request));
  }
  engine.after_submit(data.length);
  return CANELE_OK;
}

/// The arguments of a receive.
struct GivenReceive {
  Session* session;
  int source;
  std::uint64_t tag, mask;
  canele_data_t data;
  bool unbound;
  Request* request;
};

/// Posts a receive whose memory may be that of a device, or whose arguments are invalid. The arguments are copied for
/// it, so that those of other receives stay in registers.
[[gnu::cold, gnu::noinline]] int post_with_checks(const GivenReceive& given) {
  if (!postable(given.request, given.session)) return reject(given.request, given.session);
  const Engine& engine = engine_of(*given.session->context);
  if (given.source < CANELE_ANY_SOURCE || given.source >= engine.size) return reject_source(engine, given.source);
  if (!given.unbound && concerns_devices(engine, given.data)) {
    const std::optional<int> code = receive_by_device(
        {given.request, given.session, given.tag & given.mask, given.mask, given.source, given.data}, "canele_irecv");
    if (code.has_value()) return *code;
  }
  return post_to_host(given.session, given.source, given.tag, given.mask, given.data, given.unbound, given.request);
}

/// Posts a receive.
[[gnu::always_inline]] inline int post_receive(Session* session, int source, std::uint64_t tag, std::uint64_t mask,
                                               const canele_data_t& data, bool unbound, Request* request) {
  if (!postable_fast(request, session)) [[unlikely]]
    return post_with_checks({session, source, tag, mask, data, unbound, request});
  return post_to_host(session, source, tag, mask, data, unbound, request);
}

/// Waits for the answer to an operation on this stack. The thread that holds the lock executes the operation; if no
/// thread holds it, this thread does.
void await(Engine& engine, const AnswerOp& op) {
  for (unsigned turn = 1; !op.answered.load(std::memory_order_acquire); ++turn) {
    if (engine.lock.seems_put_down()) {
      engine.serve_left();
    } else if (turn % 64 != 0) {
      engine.platform.relax();
    } else {
      engine.platform.yield();
    }
  }
}

}  // namespace

namespace {

/// Checks that the program's own segments function describes all bytes of the message, with a bounded number of calls.
/// (A list of pieces needs no check: the library made its function and added up the lengths.)
int check_segments(const canele_data_t& data, const char* call) {
  constexpr int most_questions = 64, most_pieces = 32;
  iovec pieces[most_pieces];
  std::size_t done = 0;
  for (int i = 0; i < most_questions && done < data.length; ++i) {
    std::size_t covered = 0;
    data::pieces(data, done, data.length - done, pieces, most_pieces, &covered);
    if (covered == 0) {
      return error(CANELE_EINVAL, std::string(call) + ": the segments function describes only " + std::to_string(done) +
                                      " of " + std::to_string(data.length) +
                                      " bytes; expected: at least one piece with bytes at every offset");
    }
    done += covered;
  }
  return CANELE_OK;
}

}  // namespace

int check_posted_send(const Request* request, const Session* session, int destination, std::size_t length,
                      const char* call) {
  if (!sendable(request, session)) return reject(request, session);
  const Engine& engine = engine_of(*session->context);
  if (destination < 0 || destination >= engine.size) return reject_destination(engine, destination);
  if (length > longest_message) [[unlikely]]
    return reject_length(call, length);
  return check_memory("send");
}

void fill_send(Session& session, int destination, std::uint64_t tag, const canele_data_t& data,
               const SendOptions& options, Request& request) {
  if (request.stage == Request::Stage::begun) [[unlikely]] {
    prepare_begun_send(request, session, destination, tag, data, options.header);
  } else {
    prepare_send(request, session, destination, tag, data, options.header);
  }
  request.synchronous = (options.flags & CANELE_SEND_SYNCHRONOUS) != 0;
  request.item.priority = options.priority;
}

void submit_send(Session& session, int destination, std::uint64_t tag, const canele_data_t& data,
                 const SendOptions& options, Request& request) {
  Engine& engine = engine_of(*session.context);
  const bool begun = request.stage == Request::Stage::begun;
  if (begun && options.flags == 0 && post::send_begun_at_once(session, destination, tag, data, request)) [[unlikely]]
    return engine.after_submit();
  fill_send(session, destination, tag, data, options, request);
  request.PostOp::kind = OpKind::send;
  engine.submit(static_cast<PostOp&>(request));
  engine.after_submit(data.length);
}

int receive(Session* session, int source, std::uint64_t tag, std::uint64_t mask, const canele_data_t& data,
            bool unbound, Request* request) {
  if (data.segments == device::device_segments) [[unlikely]]
    return post_with_checks({session, source, tag, mask, data, unbound, request});
  return post_receive(session, source, tag, mask, data, unbound, request);
}

int check_size(const void* options, std::size_t given, std::size_t known, const char* call, const char* type) {
  constexpr std::size_t longest = 1024;  // no options structure will be larger
  const auto* const bytes = static_cast<const unsigned char*>(options);
  if (given < known || given > longest) {
    return error(CANELE_EINVAL, std::string(call) + ": options->struct_size is " + std::to_string(given) +
                                    "; expected: sizeof(" + type + ") = " + std::to_string(known));
  }
  if (std::all_of(bytes + known, bytes + given, [](unsigned char byte) { return byte == 0; })) return CANELE_OK;
  return error(CANELE_EINVAL, std::string(call) + ": options has fields that this library (" CANELE_VERSION
                                                  ") does not know, and they are not 0");
}

int missing(const char* call, const char* what) {
  return error(CANELE_EINVAL, std::string(call) + ": " + what + " must be given");
}

int check_data(const canele_data_t* data, const char* call) {
  if (data == nullptr) return error(CANELE_EINVAL, call, "data is NULL");
  if (data->length != 0 && data->base == nullptr && data->segments == nullptr) {
    return error(CANELE_EINVAL,
                 std::string(call) + ": " + std::to_string(data->length) + " bytes but neither base nor segments");
  }
  if (data->length > longest_message) return reject_length(call, data->length);
  if (data->segments == device::device_segments) return CANELE_OK;  // comm/device checks it
  if (data->segments != nullptr && data->segments != data::list_segments) return check_segments(*data, call);
  return CANELE_OK;
}

int check_header(std::size_t header, std::size_t length, const char* call) {
  if (header <= CANELE_HEADER_MAX && header <= length) return CANELE_OK;
  return error(CANELE_EINVAL, std::string(call) + ": a header of " + std::to_string(header) +
                                  " bytes; expected: at most 256 bytes, and at most the length of the message");
}

int reject(const Request* request, const Session* session) {
  if (request == nullptr || session == nullptr) return error(CANELE_EINVAL, "session and request must be given");
  if (fork::in_child) return reject_in_child("post");
  if (!session->open) return error(CANELE_ESTATE, "session \"" + session->label + "\" is closed");
  return error(CANELE_EBUSY, "the request is still in use (or its memory was not zeroed before its first use)");
}

}  // namespace canele::comm::api

int canele_isend_data(canele_session_t* session, int destination, uint64_t tag, const canele_data_t* data,
                      const canele_send_options_t* options, canele_request_t* request) try {
  SendOptions read;
  int code = check_data(data, "canele_isend_data");
  if (code == CANELE_OK) code = read_options(options, data->length, &read);
  if (code != CANELE_OK) return code;
  return post_send(&session_of(session), destination, tag, *data, read, &request_of(request));
} catch (...) {
  return caught();
}

int canele_send_set_priority(canele_request_t* request, int32_t priority) try {
  if (request == nullptr || request_of(request).kind != Request::Kind::send) {
    return error(CANELE_EINVAL, "canele_send_set_priority: not a send");
  }
  if (fork::in_child) return reject_in_child("canele_send_set_priority");
  Engine& engine = engine_of(*request_of(request).context);
  ReprioritizeOp op;
  op.kind = OpKind::reprioritize;
  op.request = &request_of(request);
  op.priority = priority;
  engine.submit(op);
  await(engine, op);
  return op.result == CANELE_OK ? CANELE_OK : error(op.result, "canele_send_set_priority: the message has left");
} catch (...) {
  return caught();
}

int canele_irecv(canele_session_t* session, int source, uint64_t tag, uint64_t mask, void* buffer, size_t length,
                 canele_request_t* request) try {
  if (length != 0 && (buffer == nullptr || length > longest_message)) [[unlikely]]
    return reject_buffer("canele_irecv", length);
  canele_data_t data{};
  data.base = buffer;
  data.length = length;
  return post_receive(&session_of(session), source, tag, mask, data, false, &request_of(request));
} catch (...) {
  return caught();
}

int canele_irecv_data(canele_session_t* session, int source, uint64_t tag, uint64_t mask, const canele_data_t* data,
                      canele_request_t* request) try {
  const int code = check_data(data, "canele_irecv_data");
  return code != CANELE_OK ? code
                           : receive(&session_of(session), source, tag, mask, *data, false, &request_of(request));
} catch (...) {
  return caught();
}

int canele_irecv_late(canele_session_t* session, int source, uint64_t tag, uint64_t mask,
                      canele_request_t* request) try {
  return post_receive(&session_of(session), source, tag, mask, {}, true, &request_of(request));
} catch (...) {
  return caught();
}

namespace {

/// Returns true if the request is a receive without a buffer that holds a message. The event is looked at first: until
/// it has happened, another thread may change the stage.
bool holds_message(const Request& r) {
  return r.kind == Request::Kind::receive && (r.word.load(std::memory_order_acquire) & event::header) != 0 &&
         r.stage == Request::Stage::matched_unbound;
}

}  // namespace

int canele_receive_peek(canele_request_t* request, void* buffer, size_t length) try {
  if (request == nullptr || (length != 0 && buffer == nullptr))
    return error(CANELE_EINVAL, "canele_receive_peek: request and buffer must be given");
  if (fork::in_child) return reject_in_child("canele_receive_peek");
  Request& r = request_of(request);
  if (!holds_message(r)) {
    return error(CANELE_ESTATE, "canele_receive_peek: the request holds no message (wait for CANELE_EVENT_HEADER)");
  }
  Message& message = *r.receive.message;
  if (length > message.stored) {
    return error(CANELE_EINVAL, "canele_receive_peek: length is " + std::to_string(length) + "; expected: at most " +
                                    std::to_string(message.stored) + " (the sender declares more with options.header)");
  }
  if (const int code = check_host_memory(engine_of(*r.context), buffer, "canele_receive_peek"); code != CANELE_OK)
    return code;
  if (length != 0) std::memcpy(buffer, message.bytes(), length);
  return CANELE_OK;
} catch (...) {
  return caught();
}

int canele_receive_bind(canele_request_t* request, const canele_data_t* data) try {
  if (request == nullptr) return error(CANELE_EINVAL, "canele_receive_bind: request is NULL");
  Request& r = request_of(request);
  const int code = check_data(data, "canele_receive_bind");
  if (code != CANELE_OK) return code;
  if (fork::in_child) return reject_in_child("canele_receive_bind");
  if (!holds_message(r)) {
    return error(CANELE_ESTATE, "canele_receive_bind: the request holds no message, or has its buffer already");
  }
  if (concerns_devices(*r.context, *data)) [[unlikely]] {
    if (const std::optional<int> done = bind_by_device(r, *data, "canele_receive_bind"); done.has_value()) return *done;
  }
  r.data = *data;
  r.PostOp::kind = OpKind::bind;
  Engine& engine = engine_of(*r.context);
  engine.submit(static_cast<PostOp&>(r));
  engine.after_submit();
  return CANELE_OK;
} catch (...) {
  return caught();
}

int canele_receive_envelope(const canele_request_t* request, canele_status_t* status) try {
  if (request == nullptr || status == nullptr)
    return error(CANELE_EINVAL, "canele_receive_envelope: request and status must be given");
  if (fork::in_child) return reject_in_child("canele_receive_envelope");
  const Request& r = request_of(request);
  if (!holds_message(r)) {
    return error(CANELE_ESTATE, "canele_receive_envelope: the request holds no message");
  }
  fill_status(r, status);
  return CANELE_OK;
} catch (...) {
  return caught();
}

namespace {

/// Marks a receive as being cancelled. Returns false if it has ended, or if another thread is cancelling it.
bool announce_cancel(Request& r) {
  std::uint64_t seen = r.word.load(std::memory_order_acquire);
  if ((seen & event::finalized) != 0) return false;
  const RequestWordGuard guard(r.context);
  do {
    if ((seen & (event::finalized | RequestWord::cancel_bit)) != 0) return false;
  } while (!r.word.compare_exchange_weak(seen, seen | RequestWord::cancel_bit, std::memory_order_acq_rel));
  return true;
}

}  // namespace

int canele_cancel(canele_request_t* request) try {
  if (request == nullptr || request_of(request).kind != Request::Kind::receive) {
    return error(CANELE_EINVAL, "canele_cancel: only receives can be cancelled");
  }
  if (fork::in_child) return reject_in_child("canele_cancel");
  Request& r = request_of(request);
  if (!announce_cancel(r)) return CANELE_OK;
  Engine& engine = engine_of(*r.context);
  r.CancelOp::kind = OpKind::cancel;
  engine.submit(static_cast<CancelOp&>(r));
  engine.after_submit();
  return CANELE_OK;
} catch (...) {
  return caught();
}

namespace {

int run_probe(canele_session_t* session, int source, uint64_t tag, uint64_t mask, Request* into, int* found,
              canele_status_t* status) {
  if (session == nullptr || found == nullptr) return error(CANELE_EINVAL, "probe: session and found must be given");
  Session& s = session_of(session);
  Engine& engine = engine_of(*s.context);
  if (!s.open) return error(CANELE_ESTATE, "probe: session \"" + s.label + "\" is closed");
  if (source < CANELE_ANY_SOURCE || source >= engine.size) {
    if (fork::in_child) return reject_in_child("probe");
    return error(CANELE_ERANK, "probe of rank " + std::to_string(source) + ": no such rank");
  }
  if (!may_progress(engine)) return reject_in_child("probe");
  const int did = engine.step();
  ProbeOp op;
  op.kind = OpKind::probe;
  op.session = &s;
  op.source = source;
  op.tag = tag & mask;
  op.mask = mask;
  op.into = into;
  engine.submit(op);
  await(engine, op);
  engine.after_submit();
  if (op.status.error == CANELE_ENOMEM) return error(CANELE_ENOMEM, "probe: no memory to index the messages that wait");
  if (op.status.error != CANELE_OK)
    return error(op.status.error, "probe of rank " + std::to_string(source) + ", which is lost");
  *found = op.found ? 1 : 0;
  if (op.found && status != nullptr) *status = op.status;
  if (!op.found && did == 0) engine.progress.empty_polls.found_nothing();
  return CANELE_OK;
}

}  // namespace

int canele_iprobe(canele_session_t* session, int source, uint64_t tag, uint64_t mask, int* found,
                  canele_status_t* status) try {
  return run_probe(session, source, tag, mask, nullptr, found, status);
} catch (...) {
  return caught();
}

int canele_improbe(canele_session_t* session, int source, uint64_t tag, uint64_t mask, int* found,
                   canele_request_t* request, canele_status_t* status) try {
  if (session == nullptr || request == nullptr || found == nullptr)
    return error(CANELE_EINVAL, "canele_improbe: session, found and request must be given");
  if (fork::in_child) return reject_in_child("canele_improbe");
  Request& r = request_of(request);
  if (!postable(&r, &session_of(session))) return reject(&r, &session_of(session));
  prepare(r, session_of(session), Request::Kind::receive);
  new (&r.receive) Direction::Receive{};
  r.unbound = true;
  r.handle = Handle::none;
  int there = 0;
  const int code = run_probe(session, source, tag, mask, &r, &there, status);
  if (code != CANELE_OK || there == 0) r.kind = Request::Kind::null;
  if (code == CANELE_OK) *found = there;
  return code;
} catch (...) {
  return caught();
}

int canele_request_status(const canele_request_t* request, canele_status_t* status) try {
  if (request == nullptr || status == nullptr)
    return error(CANELE_EINVAL, "canele_request_status: request and status must be given");
  Request& r = request_of(const_cast<canele_request_t*>(request));
  const bool null = r.kind == Request::Kind::null;
  if (!null && !r.finalized() && fork::in_child) return reject_in_child("canele_request_status");
  if (!null && !r.finalized()) return error(CANELE_ESTATE, "canele_request_status: the request is not finalized");
  if (!null) r.tell();
  fill_status(r, status);
  return CANELE_OK;
} catch (...) {
  return caught();
}
