// SPDX-License-Identifier: BSD-3-Clause
//
// Active messages of the C ABI.
//
// The thread that has served a slot posts it again. One exchange of the slot's state decides whether stop() or that
// thread cancels the slot.
#include <algorithm>
#include <cassert>
#include <cstring>
#include <new>

#include "comm/api/active.hpp"
#include "comm/api/api.hpp"
#include "comm/state/payload.hpp"

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
  int count = 0;
  if (offset < sending.head_length && max > 0) {
    out[count++] = {const_cast<std::byte*>(sending.head) + offset, sending.head_length - offset};
    offset = sending.head_length;
  }
  std::size_t covered = 0;
  const std::size_t from = offset - sending.head_length;
  return count + data::pieces(sending.payload, from, sending.payload.length - from, out + count, max - count, &covered);
}

/// Returns the session's active messages, made at first use. nullptr: *code is the error.
std::shared_ptr<ActiveMessages> active_of(Session& session, int* code) {
  if (fork::in_child) {
    *code = reject_in_child("active messages");
    return nullptr;
  }
  if (!session.open) {
    *code = error(CANELE_ESTATE, "session \"" + session.label + "\" is closed");
    return nullptr;
  }
  Engine& engine = engine_of(*session.context);
  engine.lock_for_callback();
  auto active = std::static_pointer_cast<ActiveMessages>(session.active_messages);
  if (active == nullptr) session.active_messages = active = std::make_shared<ActiveMessages>();
  engine.unlock();
  const std::lock_guard lock(active->mutex);
  if (active->session == nullptr) {
    active->session = open_session(engine, "active:" + session.label, CANELE_ORDER_PER_TAG, code);
    session.active = active->session;
  }
  return active->session == nullptr ? nullptr : active;
}

/// Records whether the id has a handler from now on. Messages to an id without one wait for the next handler, or for
/// the end of the session.
void serve_id(Session& session, std::uint64_t id, bool served) {
  Engine& engine = engine_of(*session.context);
  engine.lock_for_callback();
  std::erase(session.served, id);
  if (served) session.served.push_back(id);
  engine.unlock();
}

int check_send(const canele_session_t* session, const void* header, std::size_t header_length,
               const canele_send_options_t* options, const canele_am_t* message) {
  if (session == nullptr || message == nullptr) {
    return error(CANELE_EINVAL, "canele_am_send: session and message must be given");
  }
  if (header_length > CANELE_AM_HEADER_MAX || (header_length != 0 && header == nullptr)) {
    return error(CANELE_EINVAL, "canele_am_send: a header of " + std::to_string(header_length) + " bytes at " +
                                    (header == nullptr ? "NULL" : "an address") + "; expected: at most " +
                                    std::to_string(CANELE_AM_HEADER_MAX) + " bytes at an address");
  }
  if (options != nullptr && options->struct_size >= sizeof *options && options->header != 0) {
    return error(CANELE_EINVAL, "canele_am_send: options->header is " + std::to_string(options->header) +
                                    "; expected: 0, as the header is an argument");
  }
  return CANELE_OK;
}

}  // namespace

Handler::Handler(Session& session, std::uint64_t id, const canele_am_handler_t& program)
    : session_(session), id_(id), program_(program) {
  for (Slot& slot : slots_) slot.handler = this;
}

/// Posts all slots before any is served: a slot that is posted again would come before one that was not yet.
void Handler::start() {
  for (Slot& slot : slots_) post(slot);
  serve_in_turn(1);
}

void Handler::post(Slot& slot) {
  slot.told = false;
  const int code = canele_irecv_late(public_of(session_), CANELE_ANY_SOURCE, id_, CANELE_TAG_EXACT, &slot.request);
  if (code != CANELE_OK) {  // the session is being closed
    slot.ended = true;
    slot.ready.store(true, std::memory_order_release);
    return;
  }
  auto idle = Slot::State::idle;
  const bool stopped = !slot.state.compare_exchange_strong(idle, Slot::State::posted);
  if (stopped) canele_cancel(&slot.request);
  canele_request_on_event(&slot.request, CANELE_EVENT_HEADER | CANELE_EVENT_FINALIZED, on_event, &slot);
}

void Handler::stop() {
  for (Slot& slot : slots_) {
    if (slot.state.exchange(Slot::State::stopped) == Slot::State::posted) canele_cancel(&slot.request);
  }
  canele_condition_wait(public_of(engine_of(*session_.context)), &stopped_, 1);
}

void Handler::on_event(canele_request_t*, unsigned events, void* argument) {
  Slot& slot = *static_cast<Slot*>(argument);
  if ((events & CANELE_EVENT_HEADER) != 0) slot.handler->open(slot);
  if ((events & CANELE_EVENT_FINALIZED) != 0) slot.handler->finish(slot);
}

/// Reads the head of the message that the slot holds, and binds its buffer.
void Handler::open(Slot& slot) {
  canele_status_t envelope{};
  canele_receive_envelope(&slot.request, &envelope);
  std::uint64_t header_length = CANELE_AM_HEADER_MAX + 1;
  if (envelope.length >= am_word && canele_receive_peek(&slot.request, slot.head, am_word) == CANELE_OK) {
    std::memcpy(&header_length, slot.head, am_word);
  }
  const std::size_t head_length = am_word + header_length;
  if (header_length > CANELE_AM_HEADER_MAX || head_length > envelope.length ||
      canele_receive_peek(&slot.request, slot.head, head_length) != CANELE_OK) {
    session_.context->log(LogLevel::error, "rank " + std::to_string(envelope.source) + " sent an active message to " +
                                               std::to_string(id_) + " with a malformed head; it is dropped");
    const canele_data_t nothing = canele_data_contiguous(nullptr, 0);
    canele_receive_bind(&slot.request, &nothing);
    return;
  }
  slot.told = true;
  slot.message = {envelope.source, id_, slot.head + am_word, header_length, nullptr, envelope.length - head_length,
                  CANELE_OK};
  void* const memory = memory_for(slot);
  slot.pieces[0] = {slot.head, head_length};
  slot.pieces[1] = {memory, memory == nullptr ? 0 : slot.message.payload_length};
  slot.vector = {slot.pieces, 2};
  slot.message.payload = memory;
  const canele_data_t whole = canele_data_iov(&slot.vector);
  canele_receive_bind(&slot.request, &whole);
}

/// Returns the memory of the payload. NULL: there is no payload, or no memory for it.
void* Handler::memory_for(Slot& slot) {
  const std::size_t length = slot.message.payload_length;
  if (length == 0) return nullptr;
  if (length <= sizeof slot.small) return slot.small;
  void* memory = program_.place == nullptr ? nullptr : program_.place(&slot.message, program_.argument);
  if (memory != nullptr) return memory;
  slot.allocated.reset(new (std::nothrow) std::byte[length]);
  if (slot.allocated == nullptr) slot.message.error = CANELE_ENOMEM;
  return slot.allocated.get();
}

void Handler::finish(Slot& slot) {
  canele_status_t status{};
  canele_request_status(&slot.request, &status);
  if (!slot.told && status.error == CANELE_ENOMEM) {  // there was no memory even for its head
    slot.told = true;
    slot.message = {status.source, id_, slot.head, 0, nullptr, 0, status.error};
  }
  if (slot.message.error == CANELE_OK) slot.message.error = status.error;
  auto posted = Slot::State::posted;
  const bool stopped = !slot.state.compare_exchange_strong(posted, Slot::State::idle);
  slot.ended = stopped || status.cancelled != 0;  // cancelled: by stop(), or by the end of the engine
  slot.ready.store(true, std::memory_order_release);
  if (turns_.fetch_add(1, std::memory_order_acq_rel) == 0) serve_in_turn(1);
}

/// Serves the ready slots in order, from the next one on. That includes slots that become ready meanwhile, inside a
/// call of ours or on another thread. The handler may be freed afterwards.
void Handler::serve_in_turn(std::uint32_t turns) {
  bool stopped = false;
  do {
    while (live_ > 0 && slots_[next_].ready.exchange(false, std::memory_order_acquire)) {
      serve(slots_[next_]);
      next_ = (next_ + 1) % depth;
    }
    stopped = live_ == 0;
    turns = turns_.fetch_sub(turns, std::memory_order_acq_rel) - turns;
  } while (turns != 0);
  if (stopped) canele_condition_signal(&stopped_, 1);
}

/// Calls the handler, and posts the slot again.
void Handler::serve(Slot& slot) {
  if (slot.told) {
    program_.arrived(&slot.message, program_.argument);
    slot.allocated.reset();
  }
  if (slot.ended) {
    --live_;
  } else {
    post(slot);
  }
}

int stop_active_messages(Session& session) {
  if (session.active == nullptr) return CANELE_OK;
  if (callback_depth() != 0) {
    return error(CANELE_EDEADLK, "canele_session_close inside a completion callback, with active messages");
  }
  const auto active = std::static_pointer_cast<ActiveMessages>(session.active_messages);
  for (auto& [id, handler] : active->handlers) handler->stop();
  active->handlers.clear();
  const int code = canele_session_close(public_of(*active->session));
  if (code != CANELE_OK) return code;
  session.active = nullptr;
  session.active_messages.reset();
  return CANELE_OK;
}

}  // namespace canele::comm::api

using namespace canele::comm;
using namespace canele::comm::api;

int canele_am_register(canele_session_t* session, uint64_t id, const canele_am_handler_t* handler) try {
  if (session == nullptr || handler == nullptr || handler->struct_size < sizeof *handler ||
      handler->arrived == nullptr) {
    return error(CANELE_EINVAL,
                 "canele_am_register: session, handler, its struct_size and its function `arrived` must be given");
  }
  int code = check_size(handler, handler->struct_size, sizeof *handler, "canele_am_register", "canele_am_handler_t");
  if (code != CANELE_OK) return code;
  const auto active = active_of(session_of(session), &code);
  if (active == nullptr) return code;
  const std::lock_guard lock(active->mutex);
  auto& place = active->handlers[id];
  if (place != nullptr) {
    return error(CANELE_EBUSY, "canele_am_register: id " + std::to_string(id) + " has a handler already");
  }
  place = std::make_unique<Handler>(*active->session, id, *handler);
  serve_id(*active->session, id, true);
  place->start();
  return CANELE_OK;
} catch (...) {
  return caught();
}

int canele_am_unregister(canele_session_t* session, uint64_t id) try {
  if (session == nullptr) return error(CANELE_EINVAL, "canele_am_unregister: session is NULL");
  if (callback_depth() != 0) return error(CANELE_EDEADLK, "canele_am_unregister inside a completion callback");
  int code = CANELE_OK;
  const auto active = active_of(session_of(session), &code);
  if (active == nullptr) return code;
  std::unique_ptr<Handler> handler;
  {
    const std::lock_guard lock(active->mutex);
    const auto found = active->handlers.find(id);
    if (found == active->handlers.end()) {
      return error(CANELE_ESTATE, "canele_am_unregister: id " + std::to_string(id) + " has no handler");
    }
    handler = std::move(found->second);
    active->handlers.erase(found);
  }
  handler->stop();
  serve_id(*active->session, id, false);
  return CANELE_OK;
} catch (...) {
  return caught();
}

int canele_am_send(canele_session_t* session, int destination, uint64_t id, const void* header, size_t header_length,
                   const canele_data_t* payload, const canele_send_options_t* options, canele_am_t* message) try {
  int code = check_send(session, header, header_length, options, message);
  if (code != CANELE_OK) return code;
  Session* active = session_of(session).active.load(std::memory_order_acquire);
  if (active == nullptr) {
    if (active_of(session_of(session), &code) == nullptr) return code;
    active = session_of(session).active;
  }
  if (fork::in_child) [[unlikely]]
    return reject_in_child("canele_am_send");
  auto& sending = *reinterpret_cast<Sending*>(message);
  if (!postable(&request_of(&sending.request), active)) return reject(&request_of(&sending.request), active);
  const canele_data_t whole_payload = payload == nullptr ? canele_data_contiguous(nullptr, 0) : *payload;
  if ((code = check_data(&whole_payload, "canele_am_send")) != CANELE_OK) return code;
  sending.payload = whole_payload;
  const std::uint64_t word = header_length;
  std::memcpy(sending.head, &word, am_word);
  if (header_length != 0) std::memcpy(sending.head + am_word, header, header_length);
  sending.head_length = am_word + header_length;
  canele_send_options_t given{};
  given.struct_size = sizeof given;
  if (options != nullptr) given = *options;
  given.header = sending.head_length;
  const canele_data_t whole =
      canele_data_segments(sending_segments, &sending, sending.head_length + sending.payload.length);
  return canele_isend_data(public_of(*active), destination, id, &whole, &given, &sending.request);
} catch (...) {
  return caught();
}
