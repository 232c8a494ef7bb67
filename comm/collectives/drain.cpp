// SPDX-License-Identifier: BSD-3-Clause
//
// See drain.hpp (who, threads, surprise).
#include "comm/collectives/drain.hpp"

#include <cassert>
#include <vector>

#include "comm/api/api.hpp"
#include "comm/collectives/group.hpp"

namespace canele::comm::collectives {

void Drain::start(Session& session) {
  session_ = &session;
  post();
}

/// The next message that no receive has asked for, whatever it is.
void Drain::post() {
  const int code = canele_irecv_late(api::public_of(*session_), CANELE_ANY_SOURCE, 0, CANELE_TAG_ANY, &request_);
  assert(code == CANELE_OK && "a session that is drained stays open");
  if (code == CANELE_OK) canele_request_on_event(&request_, CANELE_EVENT_HEADER | CANELE_EVENT_FINALIZED, told, this);
}

void Drain::told(canele_request_t* request, unsigned events, void* argument) {
  if ((events & CANELE_EVENT_HEADER) != 0) {
    const canele_data_t nothing = canele_data_contiguous(nullptr, 0);
    canele_receive_bind(request, &nothing);
  }
  if ((events & CANELE_EVENT_FINALIZED) == 0 || request_of(request).cancelled) return;
  static_cast<Drain*>(argument)->post();
}

std::deque<Drain> drain_idle_groups(Engine& engine) {
  std::vector<Session*> idle;
  engine.lock_for_callback();
  for (std::uint32_t i = 0; i < engine.sessions.size(); ++i) {
    Session& session = engine.sessions.at(i);
    if (!session.label.starts_with(Group::label_prefix) || session.pending != 0) continue;
    session.open = true;
    idle.push_back(&session);
  }
  engine.unlock();
  std::deque<Drain> drains(idle.size());
  for (std::size_t i = 0; i < idle.size(); ++i) drains[i].start(*idle[i]);
  return drains;
}

}  // namespace canele::comm::collectives
