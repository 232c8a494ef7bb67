// SPDX-License-Identifier: BSD-3-Clause
//
// Active messages: handlers by id, fed by receives that are always posted.
//
// Used by active_api.cpp, and by the close of a session. Any thread; told() runs as a callback of the request. The
// engine below the API does not know active messages. A handler keeps a few receives without a buffer posted, from any
// source, in a session of its own. While all of them are busy, further messages wait as unexpected messages do, within
// the limits of those.
//
//     ActiveMessages ──▶ id ──▶ Handler ──▶ Slot × 8     post ─▶ HEADER: head is read, place() asked, buffer bound
//       │                                                  ▲       FINALIZED: ready ─▶ its turn: arrived() ─┐
//       └──▶ Session "active:label"                        └────────────────────────────────────────────────┘
//
// Slots are posted in turn, and so matched in turn. One thread at a time serves them, also in turn. That keeps the
// order of every source, and no handler runs on two threads at a time.
//
//     message:  length of the header (8 bytes) | header | payload        declared as its header: the first two
//
// Rejected: a path of their own in the engine. It would need flow control of its own.
#pragma once

#include <canele/canele.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "comm/engine/engine.hpp"

namespace canele::comm::api {

constexpr std::size_t am_word = sizeof(std::uint64_t);
constexpr std::size_t am_head_room = am_word + CANELE_AM_HEADER_MAX;
static_assert(am_head_room <= CANELE_HEADER_MAX);

class Handler;

/// One receive of a handler.
struct Slot {
  /// Decides which thread cancels: a receive is posted by its own callback, and cancelled by another thread.
  enum class State { idle, posted, stopped };

  canele_request_t request{};
  Handler* handler = nullptr;
  std::atomic<State> state{State::idle};
  std::atomic<bool> ready{false};  ///< it may be served
  bool told = false;               ///< it holds a message for the handler
  bool ended = false;              ///< it must not be posted again
  canele_am_message_t message{};
  std::unique_ptr<std::byte[]> allocated;
  iovec pieces[2]{};
  canele_iov_t vector{};
  alignas(16) std::byte head[am_head_room];
  alignas(16) std::byte small[1024];
};

class Handler {
 public:
  Handler(Session& session, std::uint64_t id, const canele_am_handler_t& program);
  /// Posts the receives.
  void start();
  /// Cancels the receives and blocks until no callback runs.
  void stop();

 private:
  static constexpr std::size_t depth = 8;
  static void on_event(canele_request_t* request, unsigned events, void* argument);
  void post(Slot& slot);
  void open(Slot& slot);
  void* memory_for(Slot& slot);
  void finish(Slot& slot);
  void serve(Slot& slot);
  void serve_in_turn(std::uint32_t turns);

  Session& session_;
  const std::uint64_t id_;
  const canele_am_handler_t program_;
  Slot slots_[depth];
  std::atomic<std::uint32_t> turns_{1};  ///< calls of serve_in_turn that are not done; 0: no thread serves
  std::size_t next_ = 0;                 ///< owned by the serving thread, like the next member
  std::size_t live_ = depth;             ///< slots that have not ended
  canele_condition_t stopped_{};
};

/// The active messages of one session.
struct ActiveMessages {
  std::mutex mutex;
  Session* session = nullptr;  ///< carries the messages
  std::map<std::uint64_t, std::unique_ptr<Handler>> handlers;
};

}  // namespace canele::comm::api
