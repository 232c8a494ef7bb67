// SPDX-License-Identifier: BSD-3-Clause
//
// Helpers shared by the files of the C ABI: checks of arguments, sessions, events.
//
// Any thread may call these functions.
#pragma once

#include <canele/canele.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "comm/engine/engine.hpp"
#include "comm/engine/fork.hpp"
#include "comm/post/completion.hpp"
#include "comm/post/error.hpp"
#include "comm/post/wait.hpp"
#include "comm/state/request_setup.hpp"
#include "ltask/reserve.hpp"

namespace canele::comm::api {

using comm::engine_of;
using comm::public_of;
using comm::session_of;
using namespace post;

/// Returns CANELE_ENOMEM if memory is too scarce to begin a call that needs some, else CANELE_OK.
inline int check_memory(const char* call) {
  if (!ltask::memory_reserve.is_scarce() || ltask::memory_reserve.refill()) [[likely]]
    return CANELE_OK;
  return error(CANELE_ENOMEM, call, "the system has no memory");
}

/// Starts the workers that the settings ask for.
int start_workers(Engine& engine);

/// Runs a dissemination barrier on a session's barrier tags, until the deadline (0: none).
int barrier(Session& session, std::uint64_t deadline_ns, BlockedThread::In in = BlockedThread::In::barrier);

/// Opens or reopens the session. Returns nullptr and sets *code on an error.
Session* open_session(Engine& engine, std::string_view label, unsigned flags, int* code);

/// Checks the size of options with a struct_size. Returns CANELE_EINVAL if the size is too small. A field that a newer
/// header has added must be 0, or else CANELE_EINVAL: the program asks for a feature that this library does not know.
int check_size(const void* options, std::size_t given, std::size_t known, const char* call, const char* type);
/// Copies options that may be NULL; *out then has the defaults. Returns the error to answer.
template <typename Options>
int copy_options(const Options* options, const char* call, const char* type, Options* out) {
  *out = {};
  out->struct_size = sizeof *out;
  if (options == nullptr) return CANELE_OK;
  const int code = check_size(options, options->struct_size, sizeof *options, call, type);
  if (code == CANELE_OK) *out = *options;
  return code;
}

/// What a send may have beside its data, checked.
struct SendOptions {
  std::int32_t priority = 0;
  std::uint32_t flags = 0;
  std::size_t header = 0;
};

/// Checks the arguments of a send: request (postable), rank and length. Returns CANELE_OK, or the error to answer.
int check_posted_send(const Request* request, const Session* session, int destination, std::size_t length,
                      const char* call);
/// Fills the request of a send that was checked.
void fill_send(Session& session, int destination, std::uint64_t tag, const canele_data_t& data,
               const SendOptions& options, Request& request);
/// Posts a send that was checked.
void submit_send(Session& session, int destination, std::uint64_t tag, const canele_data_t& data,
                 const SendOptions& options, Request& request);
/// Checks and posts a receive: like canele_irecv_data, or canele_irecv_late if `unbound`.
int receive(Session* session, int source, std::uint64_t tag, std::uint64_t mask, const canele_data_t& data,
            bool unbound, Request* request);
/// Returns CANELE_EINVAL for a description without memory.
int check_data(const canele_data_t* data, const char* call);
/// Returns CANELE_EINVAL for a header that is longer than the message or than CANELE_HEADER_MAX.
int check_header(std::size_t header, std::size_t length, const char* call);
[[gnu::cold]] int reject(const Request* request, const Session* session);

/// Registers for the events of a request. CANELE_OK: its callback may have run already, and the request may be freed.
/// CANELE_EBUSY, and nothing has changed: this use has a callback already, or is finalized and its event is still to
/// come.
int listen(Request& request, const Listening& what, const char* call);

std::string counters_json(Engine& engine);

/// Answers a call without an argument that it needs.
[[gnu::cold]] int missing(const char* call, const char* what);

/// Checks a rank of the job, and that this process is no child of fork.
int check_peer(canele_engine_t* engine, int peer, const char* call);

/// What is sent without a request. The library copies it.
struct Injected {
  const void* buffer;
  std::size_t length;  ///< in bytes, at most inject_limit
  std::size_t header;  ///< of these, what is sent ahead
};
/// Sends it in a session, whose arguments are checked. Later errors go to `told`.
int inject(Session& session, Session& told, int destination, std::uint64_t tag, const Injected& what, const char* call);

/// Removes all active-message handlers of a session that is being closed, and blocks until none runs. CANELE_EDEADLK in
/// a callback. CANELE_EBUSY while this rank's active messages are in transfer.
int stop_active_messages(Session& session);

}  // namespace canele::comm::api
