// SPDX-License-Identifier: BSD-3-Clause
//
// What the files of the C ABI share: handles to objects and back, errors with words, blocking.
//
// Who: comm/api only.
// Threads: any.
// Surprise: a handle of the C ABI is the object's own address; nothing is looked up.
#pragma once

#include <canele/canele.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "comm/core/engine.hpp"
#include "comm/core/fork.hpp"
#include "ltask/reserve.hpp"

namespace canele::comm::api {

/// Keeps `words` for canele_error_detail and returns `code`.
int error(int code, std::string words);

/// In the handler of an entry: what the exception means to a caller in C. One that no function of ours throws came out
/// of a function of the program: it ends the program.
[[gnu::cold]] int caught() noexcept;

/// In the child of a fork: CANELE_EFORK, with words. For calls that do not go by a rank: `if (fork::in_child)`.
[[gnu::cold]] int refuse_in_child(const char* call);

/// Before a call makes progress: what was put off begins. False: it must not, as this is the child of a fork.
bool resume_unless_in_child(Engine& engine);
inline bool may_progress(Engine& engine) { return !engine.put_offs.any() || resume_unless_in_child(engine); }

inline Engine& engine_of(canele_engine_t* e) { return *reinterpret_cast<Engine*>(e); }
inline const Engine& engine_of(const canele_engine_t* e) { return *reinterpret_cast<const Engine*>(e); }
inline canele_engine_t* public_of(Engine& e) { return reinterpret_cast<canele_engine_t*>(&e); }
inline Session& session_of(canele_session_t* s) { return *reinterpret_cast<Session*>(s); }
inline canele_session_t* public_of(Session& s) { return reinterpret_cast<canele_session_t*>(&s); }

/// Blocks until one of the targets is done; makes `engine` (nullptr: none) progress where no worker does.
/// CANELE_EDEADLK in a callback, CANELE_ETIMEOUT at the deadline (0: none; platform time).
int wait_for_one(Engine* engine, Target* targets, std::size_t count, std::uint64_t deadline_ns,
                 Blocked::In in = Blocked::In::wait);

/// The same for requests as the program has listed them, of which one is pending. nullptr: they are of several engines,
/// whose progress is the caller's.
int wait_for_any(Engine* engine, canele_request_t* const* requests, std::size_t count, std::uint64_t deadline_ns);

/// The same without a deadline, and without the short spin that comes first: the caller has had it. It waits for ranks
/// that are at the same work, so where they share its core it gives way to them for long before it sleeps.
int block_for_one(Engine& engine, Target* targets, std::size_t count);

/// Makes progress in finalize until `done()` is true, which is asked under the engine's lock. False at the deadline.
bool progress_until(Engine& engine, std::uint64_t deadline_ns, bool (*done)(Engine&));

/// CANELE_ENOMEM if so little memory is left that a call should not begin what needs some; else CANELE_OK.
inline int check_memory(const char* call) {
  if (!ltask::memory_reserve.is_scarce() || ltask::memory_reserve.refill()) [[likely]]
    return CANELE_OK;
  return error(CANELE_ENOMEM, std::string(call) + ": the system has no memory");
}

/// Starts the workers that the settings ask for.
int start_workers(Engine& engine);

/// Dissemination barrier on a session's barrier tags, until the deadline (0: none).
int barrier(Session& session, std::uint64_t deadline_ns, Blocked::In in = Blocked::In::barrier);

/// Opens or reopens the session; nullptr and an error code.
Session* open_session(Engine& engine, std::string_view label, unsigned flags, int* code);

void fill_status(const Request& request, canele_status_t* status);
/// Keeps the outcome of a failed request in words for canele_error_detail.
void tell_outcome(const Request& request);

/// Can a request be posted on the session? If not, refuse() says why.
inline bool postable(const Request* request, const Session* session) {
  return request != nullptr && session != nullptr && session->open && request->stage == Request::Stage::idle;
}
/// Of options with a struct_size: CANELE_EINVAL where that is too small, or what a newer header has added is not 0: the
/// program asks for something that this library does not know.
int check_size(const void* options, std::size_t given, std::size_t known, const char* call, const char* type);
/// CANELE_EINVAL for a description without memory.
int check_data(const canele_data_t* data, const char* call);
/// CANELE_EINVAL for a header that is longer than the message or than any may be.
int check_header(std::size_t header, std::size_t length, const char* call);
[[gnu::cold]] int refuse(const Request* request, const Session* session);

/// What a program asks to be told of one use of a request.
struct Listening {
  unsigned mask;  ///< of events
  canele_callback_fn callback;
  void* argument;
  void* queue_argument;  ///< with push_to_queue
};
/// CANELE_OK, and the request may be gone: its callback may have run. CANELE_EBUSY, and nothing has changed: the use
/// has a callback already, or is finalized and its event is still to come.
int listen(Request& request, const Listening& what, const char* call);

/// The callback of a request that goes to a completion queue, its argument.
void push_to_queue(canele_request_t* request, unsigned events, void* argument);

/// Makes the first line of a postable request ready: all that a receive needs whose message is there.
inline void prepare_outcome(Request& request, Session& session, Request::Kind kind) {
  const std::uint64_t before = request.word.load(std::memory_order_relaxed);
  constexpr std::uint64_t wanted = std::uint64_t{event::all} << RequestWord::wanted_shift;
  request.word.store(RequestWord::happened(before) != 0 ? 0 : before & wanted, std::memory_order_relaxed);
  request.engine = session.engine;
  request.session = &session;
  request.status_error = CANELE_OK;
  request.told = 0;
  request.kind = kind;  // eight bytes, in their order: one store
  request.stage = Request::Stage::idle;
  request.synchronous = request.late = request.rendezvous = request.cancelled = false;
  request.confirmed = request.confirm = false;
}
/// Does nobody wait for events of a postable request, so that it may end without any?
inline bool is_unwatched(const Request& request) {
  const std::uint64_t word = request.word.load(std::memory_order_relaxed);
  return RequestWord::happened(word) != 0 || word == 0;
}
/// Makes a postable request one of a send that has ended.
inline void end_as_send(Request& request, Session& session, int rank, std::uint64_t tag, std::uint64_t length,
                        int code = CANELE_OK) {
  prepare_outcome(request, session, Request::Kind::send);
  request.rank = rank;
  request.status_error = code;
  request.status_tag = tag;
  request.status_length = length;
  request.word.store(event::finalized, std::memory_order_release);
}
/// Makes a postable request ready.
inline void prepare(Request& request, Session& session, Request::Kind kind) {
  prepare_outcome(request, session, kind);
  request.begin(*session.engine);
}

/// The same for a send or a multicast, posted: all but its options, which are those of a plain send.
void prepare_send(Request& request, Session& session, int rank, std::uint64_t tag, const canele_data_t& data,
                  std::size_t header);

std::string counters_json(Engine& engine);

/// Takes back all handlers of a session that closes, and blocks until none runs. CANELE_EDEADLK in a callback,
/// CANELE_EBUSY while active messages of ours are under way.
int stop_active_messages(Session& session);

}  // namespace canele::comm::api
