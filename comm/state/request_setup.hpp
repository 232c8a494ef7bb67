// SPDX-License-Identifier: BSD-3-Clause
//
// Requests at the beginning of a use: what is written before the engine sees them.
//
// Called by the thread that posts, without the engine's lock. The request belongs to that thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "comm/state/context.hpp"

namespace canele::comm {

/// Returns true if the request can be posted on the session. If not, api::refuse() returns the error.
inline bool postable(const Request* request, const Session* session) {
  return request != nullptr && session != nullptr && session->open && request->stage == Request::Stage::idle;
}
/// Returns true if the request can be posted on the session, and no address can be device memory.
inline bool postable_fast(const Request* request, const Session* session) {
  return request != nullptr && session != nullptr && session->posts_fast && request->stage == Request::Stage::idle;
}
/// Returns true if a send can be posted with the request: it is postable, or canele_request_begin has begun its use.
inline bool sendable(const Request* request, const Session* session) {
  if (postable(request, session)) [[likely]]
    return true;
  return request != nullptr && session != nullptr && session->open && request->stage == Request::Stage::begun &&
         request->context == session->context;
}
/// Initializes the first cache line of an idle request. A receive whose message has arrived needs nothing else.
inline void prepare_outcome(Request& request, Context& context, Session* session, Request::Kind kind) {
  const std::uint64_t before = request.word.load(std::memory_order_relaxed);
  constexpr std::uint64_t wanted = std::uint64_t{event::all} << RequestWord::wanted_shift;
  request.word.store(RequestWord::happened(before) != 0 ? 0 : before & wanted, std::memory_order_relaxed);
  request.context = &context;
  request.session = session;
  request.status_error = CANELE_OK;
  request.told = 0;
  request.kind = kind;  // eight bytes in order of their addresses: the compiler merges them into one store
  request.stage = Request::Stage::idle;
  request.synchronous = request.unbound = request.rendezvous = request.cancelled = false;
  request.copying = request.needs_fin = false;
}
/// The same, of a postable request.
inline void prepare_outcome(Request& request, Session& session, Request::Kind kind) {
  prepare_outcome(request, *session.context, &session, kind);
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
  request.begin(*session.context);
}

/// Begins a use of an idle request whose operation is not known yet. Registrations for that use are kept.
void begin_use(Request& request, Context& context);

/// Initializes a request for a send or a multicast, as posted. Its options are those of a plain send.
void prepare_send(Request& request, Session& session, int rank, std::uint64_t tag, const canele_data_t& data,
                  std::size_t header);
/// The same for a begun request, which keeps what other threads may use: its word, direction and engine.
void prepare_begun_send(Request& request, Session& session, int rank, std::uint64_t tag, const canele_data_t& data,
                        std::size_t header);

}  // namespace canele::comm
