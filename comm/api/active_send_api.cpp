// SPDX-License-Identifier: BSD-3-Clause
//
// Active messages of the C ABI: sends, and messages that the program has.
//
//     canele_am_send, canele_am_post ─▶ Sending in the program's memory ─▶ a send of head and payload
//     canele_am_inject ─────────────▶ a copy of both ──────────────────▶ canele_inject's way
//
// Calls, which are answered: active_call_api.cpp.
#include <canele/active_message.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "comm/api/active.hpp"
#include "comm/api/api.hpp"
#include "comm/api/device_use.hpp"
#include "comm/post/send.hpp"
#include "comm/state/payload.hpp"
#include "comm/state/request_pool.hpp"

namespace canele::comm::api {
namespace {

/// A message in transfer, in the program's memory.
struct Sending {
  canele_request_t request;
  std::size_t head_length;
  canele_data_t payload;
  std::byte head[am_head_room];
};
static_assert(sizeof(Sending) <= sizeof(canele_am_t) && offsetof(Sending, request) == offsetof(canele_am_t, request));

/// Lists the pieces of a message: head, then payload.
int sending_segments(const void* context, std::size_t offset, iovec* out, int max) {
  const auto& sending = *static_cast<const Sending*>(context);
  return message_segments({sending.head, sending.head_length}, sending.payload, offset, out, max);
}

/// Describes a whole message. A short payload is copied behind its head: the message then lies in one piece, and may
/// leave within its post.
canele_data_t describe(Sending& sending) {
  const canele_data_t& payload = sending.payload;
  const std::size_t length = sending.head_length + payload.length;
  if (payload.segments != nullptr || length > am_head_room)
    return canele_data_segments(sending_segments, &sending, length);
  if (payload.length != 0) std::memcpy(sending.head + sending.head_length, payload.base, payload.length);
  return canele_data_contiguous(sending.head, length);
}

/// Returns whether options that were not checked yet ask for nothing that a send at once does not do.
bool is_plain(const canele_send_options_t* options) {
  return options == nullptr || (options->struct_size == sizeof *options && options->flags == 0);
}

int check_am_header(const void* header, std::size_t length, const char* call) {
  if (length <= CANELE_AM_HEADER_MAX && (length == 0 || header != nullptr)) return CANELE_OK;
  return error(CANELE_EINVAL, std::string(call) + ": a header of " + std::to_string(length) + " bytes at " +
                                  (header == nullptr ? "NULL" : "an address") + "; expected: at most " +
                                  std::to_string(CANELE_AM_HEADER_MAX) + " bytes at an address");
}

/// Checks the header of options, which an active message does not have.
int check_no_header(std::size_t header, const char* call) {
  if (header == 0) [[likely]]
    return CANELE_OK;
  return error(CANELE_EINVAL, std::string(call) + ": options->header is " + std::to_string(header) +
                                  "; expected: 0, as the header is an argument");
}

/// Writes the head of a message, and its header. Returns their length.
std::size_t write_head(const void* header, std::size_t length, std::uint64_t number, std::byte* head) {
  const std::uint64_t word = length | number << ActiveHead::number_shift;
  std::memcpy(head, &word, am_word);
  if (length != 0) std::memcpy(head + am_word, header, length);
  return am_word + length;
}

}  // namespace

Session* carrier_of(Session& session, int* code) {
  Session* active = session.active.load(std::memory_order_acquire);
  if (active == nullptr) {
    if (active_of(session, code) == nullptr) return nullptr;
    active = session.active;
  }
  if (!fork::in_child) [[likely]]
    return active;
  *code = reject_in_child("active messages");
  return nullptr;
}

ActiveMessages* messages_of(Session& session, int* code) {
  if (carrier_of(session, code) == nullptr) return nullptr;
  return static_cast<ActiveMessages*>(session.active_messages.get());  // made before `active` was set
}

int prepare_sending(Session& active, const ActiveParts& parts, const char* call, canele_am_t* message,
                    canele_data_t* whole) {
  int code = check_am_header(parts.header, parts.header_length, call);
  if (code != CANELE_OK) return code;
  auto& sending = *reinterpret_cast<Sending*>(message);
  if (!postable(&request_of(&sending.request), &active)) return reject(&request_of(&sending.request), &active);
  const canele_data_t payload = parts.payload == nullptr ? canele_data_contiguous(nullptr, 0) : *parts.payload;
  if ((code = check_data(&payload, call)) != CANELE_OK) return code;
  if ((code = check_host_data(engine_of(*active.context), payload, call)) != CANELE_OK) return code;
  if ((code = check_host_memory(engine_of(*active.context), parts.header, call)) != CANELE_OK) return code;
  sending.payload = payload;
  sending.head_length = write_head(parts.header, parts.header_length, parts.number, sending.head);
  *whole = describe(sending);
  return CANELE_OK;
}

int read_active_options(const canele_post_options_t* options, const char* call, canele_post_options_t* out) {
  const int code = copy_options(options, call, "canele_post_options_t", out);
  return code != CANELE_OK ? code : check_no_header(out->header, call);
}

ActiveBlock* kept_block(const void* payload, const char* call) {
  if (fork::in_child) return static_cast<void>(reject_in_child(call)), nullptr;
  if (payload != nullptr && reinterpret_cast<std::uintptr_t>(payload) % alignof(ActiveBlock) == 0) {
    ActiveBlock* const block = ActiveBlock::of(payload);
    if (block->mark == ActiveBlock::valid && block->blocks != nullptr) return block;
  }
  error(CANELE_EINVAL, call, "the payload was neither kept nor taken out of a queue");
  return nullptr;
}

}  // namespace canele::comm::api

using namespace canele::comm;
using namespace canele::comm::api;

int canele_am_send(canele_session_t* session, int destination, uint64_t id, const void* header, size_t header_length,
                   const canele_data_t* payload, const canele_send_options_t* options, canele_am_t* message) try {
  constexpr const char* call = "canele_am_send";
  if (session == nullptr || message == nullptr) return missing(call, "session and message");
  int code = CANELE_OK;
  if (options != nullptr && options->struct_size >= sizeof *options) code = check_no_header(options->header, call);
  if (code != CANELE_OK) return code;
  Session* const active = carrier_of(session_of(session), &code);
  if (active == nullptr) return code;
  canele_data_t whole;
  code = prepare_sending(*active, {header, header_length, payload}, call, message, &whole);
  if (code != CANELE_OK) return code;
  Request& request = request_of(&message->request);
  if (whole.segments == nullptr && is_plain(options) &&
      post::may_send_at_once(*active, destination, whole.length, request) &&
      post::send_at_once(*active, destination, id, whole.base, whole.length, request)) {
    return CANELE_OK;
  }
  canele_send_options_t given{};
  given.struct_size = sizeof given;
  if (options != nullptr) given = *options;
  given.header = am_word + header_length;
  return canele_isend_data(public_of(*active), destination, id, &whole, &given, &message->request);
} catch (...) {
  return caught();
}

int canele_am_post(canele_session_t* session, int destination, uint64_t id, const void* header, size_t header_length,
                   const canele_data_t* payload, const canele_post_options_t* options, canele_am_t* message) try {
  constexpr const char* call = "canele_am_post";
  if (session == nullptr || message == nullptr) return missing(call, "session and message");
  canele_post_options_t given;
  int code = read_active_options(options, call, &given);
  if (code != CANELE_OK) return code;
  Session* const active = carrier_of(session_of(session), &code);
  if (active == nullptr) return code;
  canele_data_t whole;
  code = prepare_sending(*active, {header, header_length, payload}, call, message, &whole);
  if (code != CANELE_OK) return code;
  given.header = am_word + header_length;
  return canele_post_send(public_of(*active), destination, id, &whole, &given, &message->request);
} catch (...) {
  return caught();
}

int canele_am_inject(canele_session_t* session, int destination, uint64_t id, const void* header, size_t header_length,
                     const void* payload, size_t payload_length) try {
  constexpr const char* call = "canele_am_inject";
  if (session == nullptr || (payload == nullptr && payload_length != 0)) return missing(call, "session and payload");
  if (const int code = check_am_header(header, header_length, call); code != CANELE_OK) return code;
  const std::size_t head_length = am_word + header_length;
  if (payload_length > inject_limit - head_length) {
    return error(CANELE_EINVAL, std::string(call) + ": " + std::to_string(header_length) + " bytes of header and " +
                                    std::to_string(payload_length) + " of payload; expected: together at most " +
                                    std::to_string(inject_limit - am_word) + " bytes");
  }
  int code = CANELE_OK;
  Session* const active = carrier_of(session_of(session), &code);
  if (active == nullptr) return code;
  std::byte whole[inject_limit];
  write_head(header, header_length, 0, whole);
  if (payload_length != 0) std::memcpy(whole + head_length, payload, payload_length);
  return inject(*active, session_of(session), destination, id, {whole, head_length + payload_length, head_length},
                call);
} catch (...) {
  return caught();
}

int canele_am_open(canele_session_t* session, uint64_t id, canele_queue_t* queue, void* user) try {
  constexpr const char* call = "canele_am_open";
  if (session == nullptr || queue == nullptr) return missing(call, "session and queue");
  return register_handler(session_of(session), id, {{}, {}, &queue_of(queue), user}, call);
} catch (...) {
  return caught();
}

int canele_am_keep(const canele_am_message_t* message, void** payload) try {
  constexpr const char* call = "canele_am_keep";
  if (message == nullptr || payload == nullptr) return missing(call, "message and payload");
  if (fork::in_child) return reject_in_child(call);
  ActiveBlock& block = *ActiveBlock::of(message);
  if (block.mark != ActiveBlock::valid || block.call == nullptr)
    return error(CANELE_ESTATE, call, "the message is kept already, or its handler has returned");
  if (block.is_elsewhere || (message->payload != nullptr && message->payload != block.payload()))
    return error(CANELE_EINVAL, call, "the payload lies in memory of the program, which `place` has told");
  block.call->blocks.keep(block);
  *payload = block.payload();
  return CANELE_OK;
} catch (...) {
  return caught();
}

const void* canele_am_header(const void* payload, size_t* length) {
  const ActiveBlock* const block = kept_block(payload, "canele_am_header");
  if (length != nullptr) *length = block != nullptr ? block->message.header_length : 0;
  return block != nullptr ? block->message.header : nullptr;
}

int canele_am_release(void* payload) try {
  ActiveBlock* const block = kept_block(payload, "canele_am_release");
  if (block == nullptr) return fork::in_child ? CANELE_EFORK : CANELE_EINVAL;
  ActiveBlocks::give_back(*block);
  return CANELE_OK;
} catch (...) {
  return caught();
}
