// SPDX-License-Identifier: BSD-3-Clause
//
// Active messages of the C ABI: handlers are registered and removed. Handlers themselves: active_handler.cpp.
#include <utility>

#include "comm/api/active.hpp"
#include "comm/api/api.hpp"
#include "comm/state/payload.hpp"

namespace canele::comm::api {

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
  if (active->replies == nullptr)
    active->replies = open_session(engine, "canele.reply:" + session.label, CANELE_ORDER_PER_TAG, code);
  if (active->replies == nullptr) return nullptr;
  if (active->session == nullptr)
    active->session = open_session(engine, "active:" + session.label, CANELE_ORDER_PER_TAG, code);
  session.active = active->session;
  return active->session == nullptr ? nullptr : active;
}

int message_segments(std::span<const std::byte> head, const canele_data_t& payload, std::size_t offset, iovec* out,
                     int max) {
  int count = 0;
  if (offset < head.size() && max > 0) {
    out[count++] = {const_cast<std::byte*>(head.data()) + offset, head.size() - offset};
    offset = head.size();
  }
  std::size_t covered = 0;
  const std::size_t from = offset - head.size();
  return count + data::pieces(payload, from, payload.length - from, out + count, max - count, &covered);
}

namespace {

/// Records whether the id has a handler from now on. Messages to an id without one wait for the next handler, or for
/// the end of the session.
void serve_id(Session& session, std::uint64_t id, bool served) {
  Engine& engine = engine_of(*session.context);
  engine.lock_for_callback();
  std::erase(session.served, id);
  if (served) session.served.push_back(id);
  engine.unlock();
}

}  // namespace

int register_handler(Session& session, std::uint64_t id, const ActiveTarget& target, const char* call) {
  int code = CANELE_OK;
  const auto active = active_of(session, &code);
  if (active == nullptr) return code;
  auto handler = std::make_unique<Handler>(*active, id, target);
  if (!handler->prepare()) return error(CANELE_ENOMEM, call, "no memory for the handler");
  {
    const std::lock_guard lock(active->mutex);
    auto& place = active->handlers[id];
    if (place != nullptr)
      return error(CANELE_EBUSY, std::string(call) + ": id " + std::to_string(id) + " has a handler already");
    place = std::move(handler);
    serve_id(*active->session, id, true);
    place->start();
  }
  engine_of(*session.context).after_submit();  // handles messages that came earlier
  return CANELE_OK;
}

namespace {

/// Returns the error of a close while calls are under way, of this rank or to it.
int check_calls(const ActiveMessages& active) {
  const std::int64_t unanswered = active.unanswered.load(std::memory_order_acquire);  // partner: note_answered()
  if (unanswered != 0) {
    return error(CANELE_EBUSY, "canele_session_close: " + std::to_string(unanswered) +
                                   " calls of other ranks are not answered; expected: a reply to each, or its message "
                                   "given back");
  }
  if (active.replies == nullptr) return CANELE_OK;
  Engine& engine = engine_of(*active.replies->context);
  engine.lock_for_callback();
  const std::uint64_t pending = active.replies->pending;
  engine.unlock();
  if (pending == 0) return CANELE_OK;
  return error(CANELE_EBUSY,
               "canele_session_close: " + std::to_string(pending) + " calls, or replies to calls, are pending");
}

int close_carrier(Session*& carrier) {
  if (carrier == nullptr) return CANELE_OK;
  const int code = canele_session_close(public_of(*carrier));
  if (code == CANELE_OK) carrier = nullptr;
  return code;
}

}  // namespace

int stop_active_messages(Session& session) {
  if (session.active_messages == nullptr) return CANELE_OK;
  if (callback_depth() != 0) {
    return error(CANELE_EDEADLK, "canele_session_close inside a completion callback, with active messages");
  }
  const auto active = std::static_pointer_cast<ActiveMessages>(session.active_messages);
  if (const int code = check_calls(*active); code != CANELE_OK) return code;
  for (auto& [id, handler] : active->handlers) handler->stop();
  active->handlers.clear();
  int code = check_calls(*active);  // a handler may have kept another one
  // In this order: while messages are in transfer, the session stays as it is, with its calls.
  if (code == CANELE_OK) code = close_carrier(active->session);
  if (code == CANELE_OK) code = close_carrier(active->replies);
  if (code != CANELE_OK) return code;
  session.active = nullptr;
  session.active_messages.reset();
  return CANELE_OK;
}

}  // namespace canele::comm::api

using namespace canele::comm;
using namespace canele::comm::api;

namespace {

int register_program(const char* call, canele_session_t* session, std::uint64_t id, const canele_am_handler_t* handler,
                     const canele_am_options_t* options) {
  if (session == nullptr || handler == nullptr || handler->struct_size < sizeof *handler ||
      handler->arrived == nullptr) {
    return error(CANELE_EINVAL, call, "session, handler, its struct_size and its function `arrived` must be given");
  }
  if (const int code = check_size(handler, handler->struct_size, sizeof *handler, call, "canele_am_handler_t");
      code != CANELE_OK)
    return code;
  canele_am_options_t known;
  if (const int code = copy_options(options, call, "canele_am_options_t", &known); code != CANELE_OK) return code;
  if ((known.flags & ~static_cast<unsigned>(CANELE_AM_CONCURRENT)) != 0)
    return error(CANELE_EINVAL, std::string(call) + ": options->flags is " + std::to_string(known.flags) +
                                    "; expected: flags of enum canele_am_flags");
  return register_handler(session_of(session), id, {*handler, known, nullptr, nullptr}, call);
}

}  // namespace

int canele_am_register(canele_session_t* session, uint64_t id, const canele_am_handler_t* handler) try {
  return register_program("canele_am_register", session, id, handler, nullptr);
} catch (...) {
  return caught();
}

int canele_am_register_with(canele_session_t* session, uint64_t id, const canele_am_handler_t* handler,
                            const canele_am_options_t* options) try {
  return register_program("canele_am_register_with", session, id, handler, options);
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
