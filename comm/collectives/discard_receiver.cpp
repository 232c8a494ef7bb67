// SPDX-License-Identifier: BSD-3-Clause
//
// Receives that discard messages, one at a time for each session.
#include "comm/collectives/discard_receiver.hpp"

#include <cassert>
#include <vector>

#include "comm/collectives/group.hpp"
#include "comm/engine/engine.hpp"

namespace canele::comm::collectives {

void DiscardReceiver::start(Session& session) {
  session_ = &session;
  post();
}

/// Posts a receive for the next message that no other receive has asked for, whatever it is.
void DiscardReceiver::post() {
  const int code = canele_irecv_late(public_of(*session_), CANELE_ANY_SOURCE, 0, CANELE_TAG_ANY, &request_);
  assert(code == CANELE_OK && "a session whose messages are discarded stays open");
  if (code == CANELE_OK)
    canele_request_on_event(&request_, CANELE_EVENT_HEADER | CANELE_EVENT_FINALIZED, on_event, this);
}

void DiscardReceiver::on_event(canele_request_t* request, unsigned events, void* argument) {
  if ((events & CANELE_EVENT_HEADER) != 0) {
    const canele_data_t nothing = canele_data_contiguous(nullptr, 0);
    canele_receive_bind(request, &nothing);
  }
  if ((events & CANELE_EVENT_FINALIZED) == 0 || request_of(request).cancelled) return;
  static_cast<DiscardReceiver*>(argument)->post();
}

ShutdownDiscards::ShutdownDiscards(Engine& engine) {
  std::vector<One*> idle;
  engine.lock_for_callback();
  for (std::uint32_t i = 0; i < engine.sessions.size(); ++i) {
    Session& session = engine.sessions.at(i);
    if (session.label.starts_with(Group::label_prefix) && Group::is_idle(session)) idle.push_back(&add(session));
  }
  engine.session_created = [this](Session& session) CANELE_UNDER_LOCK { on_session_announced(session); };
  engine.unlock();
  for (One* const one : idle) one->receiver.start(*one->session);
}

/// Under the engine's lock.
ShutdownDiscards::One& ShutdownDiscards::add(Session& session) {
  session.open = true;
  One& one = all_.emplace_back();
  one.session = &session;
  return one;
}

/// Called under the engine's lock. A receive is posted without it, so a task does so.
void ShutdownDiscards::on_session_announced(Session& session) {
  Engine& engine = engine_of(*session.context);
  if (engine.stage == Stage::leaving || !session.label.starts_with(Group::label_prefix)) return;
  One& one = add(session);
  one.prepare(start);
  engine.tasks.submit(one);
}

void ShutdownDiscards::start(ltask::Task& task) {
  auto& one = static_cast<One&>(task);
  ++callbacks_on_this_thread;
  one.receiver.start(*one.session);
  --callbacks_on_this_thread;
}

}  // namespace canele::comm::collectives
