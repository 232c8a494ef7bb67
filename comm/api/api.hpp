// SPDX-License-Identifier: BSD-3-Clause
//
// Helpers shared by the files of the C ABI: conversion of handles, errors with a description, blocking.
//
// A handle of the C ABI is the address of the object, so a conversion looks nothing up. Any thread may call these
// functions. comm/api uses them; so do comm/post, comm/collectives and comm/rendezvous.
#pragma once

#include <canele/canele.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "comm/engine/engine.hpp"
#include "comm/engine/fork.hpp"
#include "ltask/reserve.hpp"

namespace canele::comm::api {

/// Keeps `words` for canele_error_detail and returns `code`.
int error(int code, std::string words);

/// Translates the current exception into an error code, in the catch handler of a C function. An exception that no
/// function of the library throws came out of a function of the program; it ends the program.
[[gnu::cold]] int caught() noexcept;

/// Returns CANELE_EFORK with a description, in the child of a fork. For calls that take no rank: `if (fork::in_child)`.
[[gnu::cold]] int refuse_in_child(const char* call);

/// Starts deferred work before a call makes progress. Returns false in the child of a fork, where no call may make
/// progress.
bool resume_unless_in_child(Engine& engine);
inline bool may_progress(Engine& engine) { return !engine.put_offs.any() || resume_unless_in_child(engine); }

inline Engine& engine_of(canele_engine_t* e) { return *reinterpret_cast<Engine*>(e); }
inline const Engine& engine_of(const canele_engine_t* e) { return *reinterpret_cast<const Engine*>(e); }
inline canele_engine_t* public_of(Engine& e) { return reinterpret_cast<canele_engine_t*>(&e); }
inline Session& session_of(canele_session_t* s) { return *reinterpret_cast<Session*>(s); }
inline canele_session_t* public_of(Session& s) { return reinterpret_cast<canele_session_t*>(&s); }

/// Blocks until one of the targets is done. Makes progress on `engine` (nullptr: none) unless its worker does. Returns
/// CANELE_EDEADLK in a callback and CANELE_ETIMEOUT at the deadline (0: none; platform time in ns).
int wait_for_one(Engine* engine, Target* targets, std::size_t count, std::uint64_t deadline_ns,
                 Blocked::In in = Blocked::In::wait);

/// Blocks until one of the program's listed requests is done; at least one of them is pending. engine = nullptr: they
/// belong to several engines, and the caller makes the progress.
int wait_for_any(Engine* engine, canele_request_t* const* requests, std::size_t count, std::uint64_t deadline_ns);

/// Blocks like wait_for_one(), without a deadline and without the initial short spin, which the caller has done
/// already. The awaited ranks are executing the same collective. If they share the caller's core, it yields for long
/// before it sleeps.
int block_for_one(Engine& engine, Target* targets, std::size_t count);

/// Makes progress in finalize until `done()` returns true; `done()` is called under the engine's lock. Returns false at
/// the deadline.
bool progress_until(Engine& engine, std::uint64_t deadline_ns, bool (*done)(Engine&));

/// Returns CANELE_ENOMEM if memory is too scarce to begin a call that needs some, else CANELE_OK.
inline int check_memory(const char* call) {
  if (!ltask::memory_reserve.is_scarce() || ltask::memory_reserve.refill()) [[likely]]
    return CANELE_OK;
  return error(CANELE_ENOMEM, std::string(call) + ": the system has no memory");
}

/// Starts the workers that the settings ask for.
int start_workers(Engine& engine);

/// Runs a dissemination barrier on a session's barrier tags, until the deadline (0: none).
int barrier(Session& session, std::uint64_t deadline_ns, Blocked::In in = Blocked::In::barrier);

/// Opens or reopens the session. Returns nullptr and sets *code on an error.
Session* open_session(Engine& engine, std::string_view label, unsigned flags, int* code);

void fill_status(const Request& request, canele_status_t* status);
/// Keeps a description of a failed request's outcome for canele_error_detail.
void tell_outcome(const Request& request);

/// Returns true if the request can be posted on the session. If not, refuse() returns the error.
inline bool postable(const Request* request, const Session* session) {
  return request != nullptr && session != nullptr && session->open && request->stage == Request::Stage::idle;
}
/// Checks the size of options with a struct_size. Returns CANELE_EINVAL if the size is too small. A field that a newer
/// header has added must be 0, or else CANELE_EINVAL: the program asks for a feature that this library does not know.
int check_size(const void* options, std::size_t given, std::size_t known, const char* call, const char* type);
/// Returns CANELE_EINVAL for a description without memory.
int check_data(const canele_data_t* data, const char* call);
/// Returns CANELE_EINVAL for a header that is longer than the message or than CANELE_HEADER_MAX.
int check_header(std::size_t header, std::size_t length, const char* call);
[[gnu::cold]] int refuse(const Request* request, const Session* session);

/// A program's registration for the events of one use of a request.
struct Listening {
  unsigned mask;  ///< of events
  canele_callback_fn callback;
  void* argument;
  void* queue_argument;  ///< with push_to_queue
};
/// Registers for the events of a request. CANELE_OK: its callback may have run already, and the request may be freed.
/// CANELE_EBUSY, and nothing has changed: this use has a callback already, or is finalized and its event is still to
/// come.
int listen(Request& request, const Listening& what, const char* call);

/// The callback that puts a request into a completion queue, which is its argument.
void push_to_queue(canele_request_t* request, unsigned events, void* argument);

/// Initializes the first cache line of a postable request. A receive whose message has arrived needs nothing else.
inline void prepare_outcome(Request& request, Session& session, Request::Kind kind) {
  const std::uint64_t before = request.word.load(std::memory_order_relaxed);
  constexpr std::uint64_t wanted = std::uint64_t{event::all} << RequestWord::wanted_shift;
  request.word.store(RequestWord::happened(before) != 0 ? 0 : before & wanted, std::memory_order_relaxed);
  request.engine = session.engine;
  request.session = &session;
  request.status_error = CANELE_OK;
  request.told = 0;
  request.kind = kind;  // eight bytes in order of their addresses: the compiler merges them into one store
  request.stage = Request::Stage::idle;
  request.synchronous = request.late = request.rendezvous = request.cancelled = false;
  request.confirmed = request.confirm = false;
}
/// Returns true if no callback or queue is registered for the next use of a postable request. It may then end without
/// events.
inline bool is_unwatched(const Request& request) {
  const std::uint64_t word = request.word.load(std::memory_order_relaxed);
  return RequestWord::happened(word) != 0 || word == 0;
}
/// Turns a postable request into a send that has ended.
inline void end_as_send(Request& request, Session& session, int rank, std::uint64_t tag, std::uint64_t length,
                        int code = CANELE_OK) {
  prepare_outcome(request, session, Request::Kind::send);
  request.rank = rank;
  request.status_error = code;
  request.status_tag = tag;
  request.status_length = length;
  request.word.store(event::finalized, std::memory_order_release);
}
/// Initializes a postable request for a post.
inline void prepare(Request& request, Session& session, Request::Kind kind) {
  prepare_outcome(request, session, kind);
  request.begin(*session.engine);
}

/// Initializes a request for a send or a multicast, as posted. Its options are those of a plain send.
void prepare_send(Request& request, Session& session, int rank, std::uint64_t tag, const canele_data_t& data,
                  std::size_t header);

std::string counters_json(Engine& engine);

/// Removes all active-message handlers of a session that is being closed, and blocks until none runs. CANELE_EDEADLK in
/// a callback. CANELE_EBUSY while this rank's active messages are in transfer.
int stop_active_messages(Session& session);

}  // namespace canele::comm::api
