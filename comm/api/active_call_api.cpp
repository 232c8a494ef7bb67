// SPDX-License-Identifier: BSD-3-Clause
//
// Calls of the C ABI: active messages that are answered by a reply.
//
//     caller                                              receiver
//     canele_am_call ─┬─▶ a receive for the reply ◀────── canele_am_reply ◀─ token ◀─┐
//                     └─▶ a synchronous send ───────────▶ handler or queue ──────────┤
//     both have ended ─▶ the call's request ends          end_unanswered ◀── no token ┘
//
// Replies have a session of their own. The tag of a reply is twice the number of the call, plus 1 if the program has
// taken no token. The receive takes both. The send is synchronous, so a message that is dropped ends its call, too.
//
// Each part ends in a callback, on any thread. The callback of the last part ends the call.
#include <canele/active_message.h>

#include <atomic>
#include <cassert>
#include <cstddef>
#include <string>

#include "comm/api/active.hpp"
#include "comm/api/api.hpp"
#include "comm/api/device_use.hpp"
#include "comm/api/posted_use.hpp"

namespace canele::comm::api {
namespace {

constexpr std::uint64_t unanswered_bit = 1;

std::uint64_t tag_of(std::uint64_t number) { return number << 1; }

/// A call under way, in the program's memory.
struct RemoteCall {
  canele_request_t request;  ///< the program's
  canele_request_t reply;
  canele_am_t message;
  std::atomic<int> parts;  ///< that have not ended
  std::atomic<int> error;  ///< of the first part that has failed
  std::uint64_t length;    ///< of the reply, in bytes
};
static_assert(sizeof(RemoteCall) <= sizeof(canele_call_t) &&
              offsetof(RemoteCall, request) == offsetof(canele_call_t, request));

/// Ends the call. Its memory may be gone afterwards.
void finish(RemoteCall& call) {
  Request& request = request_of(&call.request);
  Engine& engine = engine_of(*request.context);
  engine.lock_for_callback();
  request.status_length = call.length;
  ++engine.pending_sends;
  ++request.session->pending;
  engine.finish(request, call.error.load(std::memory_order_relaxed));
  engine.unlock();
  engine.after_submit();
}

void note_error(RemoteCall& call, int code) {
  int none = CANELE_OK;
  if (code != CANELE_OK) call.error.compare_exchange_strong(none, code, std::memory_order_relaxed);
}

void end_part(RemoteCall& call) {
  if (call.parts.fetch_sub(1, std::memory_order_acq_rel) == 1)
    finish(call);  // acquires what the other part has released
}

/// A message that was not sent, or was dropped, gets no reply.
void end_send(RemoteCall& call, int code) {
  note_error(call, code);
  if (code != CANELE_OK) canele_cancel(&call.reply);
  end_part(call);
}

void on_sent(canele_request_t* request, unsigned, void* argument) {
  end_send(*static_cast<RemoteCall*>(argument), request_of(request).status_error);
}

void on_reply(canele_request_t* request, unsigned, void* argument) {
  RemoteCall& call = *static_cast<RemoteCall*>(argument);
  const Request& reply = request_of(request);
  call.length = reply.status_length;
  note_error(call, reply.status_error);
  if (reply.cancelled || (reply.status_tag & unanswered_bit) != 0) note_error(call, CANELE_ECANCELED);
  end_part(call);
}

canele_post_options_t told_by(canele_callback_fn callback, RemoteCall& call) {
  canele_post_options_t options{};
  options.struct_size = sizeof options;
  options.done.kind = CANELE_COMPLETE_CALLBACK;
  options.done.callback = callback;
  options.done.user = &call;
  return options;
}

/// What a call is made of, checked.
struct CallArguments {
  int destination;
  std::uint64_t id;
  canele_data_t reply;
  std::int32_t priority;
};

/// Posts the receive and the send. Returns an error if nothing was taken.
int start_call(ActiveMessages& active, const CallArguments& arguments, const ActiveParts& given, PostedUse& use,
               RemoteCall& call) {
  constexpr const char* name = "canele_am_call";
  ActiveParts parts = given;
  parts.number = active.calls.fetch_add(1, std::memory_order_relaxed) + 1;
  assert(parts.number < ActiveHead::most_calls);
  canele_data_t whole;
  int code = prepare_sending(*active.session, parts, name, &call.message, &whole);
  if (code != CANELE_OK) return code;
  call.parts.store(2, std::memory_order_relaxed);
  call.error.store(CANELE_OK, std::memory_order_relaxed);
  call.length = 0;
  canele_post_options_t options = told_by(on_reply, call);
  code = canele_post_receive(public_of(*active.replies), arguments.destination, tag_of(parts.number), ~unanswered_bit,
                             &arguments.reply, &options, &call.reply);
  if (code != CANELE_OK) return code;
  use.listen_first();
  prepare_send(use.request(), *active.replies, arguments.destination, arguments.id, {}, 0);
  transition(use.request(), Request::Stage::moving);
  options = told_by(on_sent, call);
  options.flags = CANELE_POST_SYNCHRONOUS;
  options.priority = arguments.priority;
  options.header = am_word + parts.header_length;
  code = canele_post_send(public_of(*active.session), arguments.destination, arguments.id, &whole, &options,
                          &call.message.request);
  if (code != CANELE_OK) end_send(call, code);
  return CANELE_OK;
}

/// Finds the active messages of a token's session, which must wait for a reply to this call.
ActiveMessages* answerer_of(canele_session_t* session, const canele_am_token_t* token, const char* call, int* code) {
  if (session == nullptr || token == nullptr) {
    *code = missing(call, "session and token");
    return nullptr;
  }
  ActiveMessages* const active = messages_of(session_of(session), code);
  if (active == nullptr) return nullptr;
  const std::uint64_t number = token->opaque[1];
  if (number != 0 && number < ActiveHead::most_calls && active->unanswered.load(std::memory_order_relaxed) > 0)
    return active;
  *code = error(CANELE_EINVAL, call, "the token belongs to no call of this session that waits for a reply");
  return nullptr;
}

}  // namespace

void ActiveMessages::end_unanswered(int source, std::uint64_t number) {
  canele_post_options_t options{};
  options.struct_size = sizeof options;
  options.done.kind = CANELE_COMPLETE_NONE;
  const canele_data_t nothing = canele_data_contiguous(nullptr, 0);
  const int code =
      canele_post_send(public_of(*replies), source, tag_of(number) | unanswered_bit, &nothing, &options, nullptr);
  if (code != CANELE_OK)
    session->context->log(LogLevel::error, "rank " + std::to_string(source) +
                                               " is not told that its call was not answered: " + canele_error_detail());
  note_answered();
}

}  // namespace canele::comm::api

using namespace canele::comm;
using namespace canele::comm::api;

int canele_am_call(canele_session_t* session, int destination, uint64_t id, const void* header, size_t header_length,
                   const canele_data_t* payload, const canele_data_t* reply, const canele_post_options_t* options,
                   canele_call_t* call) try {
  constexpr const char* name = "canele_am_call";
  if (session == nullptr || call == nullptr) return missing(name, "session and call");
  canele_post_options_t given;
  int code = read_active_options(options, name, &given);
  if (code == CANELE_OK) code = check_completion(given.done, name);
  if (code == CANELE_OK && given.flags != 0)
    code = error(CANELE_EINVAL, std::string(name) + ": flags are " + std::to_string(given.flags) + "; expected: 0");
  const CallArguments arguments{destination, id, reply != nullptr ? *reply : canele_data_contiguous(nullptr, 0),
                                given.priority};
  if (code == CANELE_OK) code = check_data(&arguments.reply, name);
  if (code != CANELE_OK) return code;
  ActiveMessages* const active = messages_of(session_of(session), &code);
  if (active == nullptr) return code;
  code = check_peer(public_of(engine_of(*session_of(session).context)), destination, name);
  if (code == CANELE_OK) code = check_host_data(engine_of(*session_of(session).context), arguments.reply, name);
  if (code != CANELE_OK) return code;
  RemoteCall& made = *reinterpret_cast<RemoteCall*>(call);
  PostedUse use;
  code = use.begin(public_of(*active->replies), &made.request, given.done, destination, name);
  return code == CANELE_OK ? start_call(*active, arguments, {header, header_length, payload}, use, made) : code;
} catch (...) {
  return caught();
}

int canele_am_take_token(const canele_am_message_t* message, canele_am_token_t* token) try {
  constexpr const char* call = "canele_am_take_token";
  if (message == nullptr || token == nullptr) return missing(call, "message and token");
  if (fork::in_child) return reject_in_child(call);
  ActiveBlock& block = *ActiveBlock::of(message);
  const std::uint64_t number = block.mark == ActiveBlock::valid ? block.take_reply() : 0;
  if (number == 0) return error(CANELE_ESTATE, call, "the sender expects no reply, or the token was taken before");
  *token = {{static_cast<std::uint64_t>(message->source), number}};
  return CANELE_OK;
} catch (...) {
  return caught();
}

const canele_am_message_t* canele_am_message_of(const void* payload) {
  const ActiveBlock* const block = kept_block(payload, "canele_am_message_of");
  return block != nullptr ? &block->message : nullptr;
}

int canele_am_reply(canele_session_t* session, const canele_am_token_t* token, const canele_data_t* data,
                    const canele_post_options_t* options, canele_request_t* request) try {
  int code = CANELE_OK;
  ActiveMessages* const active = answerer_of(session, token, "canele_am_reply", &code);
  if (active == nullptr) return code;
  const canele_data_t nothing = canele_data_contiguous(nullptr, 0);
  code = canele_post_send(public_of(*active->replies), static_cast<int>(token->opaque[0]), tag_of(token->opaque[1]),
                          data != nullptr ? data : &nothing, options, request);
  if (code >= CANELE_OK) active->note_answered();
  return code;
} catch (...) {
  return caught();
}

int canele_am_inject_reply(canele_session_t* session, const canele_am_token_t* token, const void* buffer,
                           size_t length) try {
  int code = CANELE_OK;
  ActiveMessages* const active = answerer_of(session, token, "canele_am_inject_reply", &code);
  if (active == nullptr) return code;
  code = canele_inject(public_of(*active->replies), static_cast<int>(token->opaque[0]), tag_of(token->opaque[1]),
                       buffer, length);
  if (code == CANELE_OK) active->note_answered();
  return code;
} catch (...) {
  return caught();
}
