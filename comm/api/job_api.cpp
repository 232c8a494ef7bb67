// SPDX-License-Identifier: BSD-3-Clause
//
// The other ranks of the job.
#include <canele/job.h>

#include <string>

#include "comm/api/api.hpp"
#include "comm/engine/peer_watch.hpp"

using namespace canele::comm;
using namespace canele::comm::api;

namespace {

int state_of(const Peer* peer) {
  if (peer == nullptr) return CANELE_PEER_UNKNOWN;
  switch (peer->state) {
    case Peer::State::resolving:
    case Peer::State::connecting:
      return CANELE_PEER_CONNECTING;
    case Peer::State::up:
      return CANELE_PEER_UP;
    case Peer::State::left:
      return CANELE_PEER_LEFT;
    case Peer::State::failed:
      break;
  }
  return CANELE_PEER_LOST;
}

}  // namespace

int canele_peer_state(canele_engine_t* engine, int rank) try {
  if (const int code = check_peer(engine, rank, "canele_peer_state"); code != CANELE_OK) return code;
  Engine& e = engine_of(engine);
  e.lock_for_callback();
  const int state = state_of(e.peers[rank]);
  e.unlock();
  return state;
} catch (...) {
  return caught();
}

int canele_on_peer(canele_engine_t* engine, canele_peer_fn callback, void* argument) try {
  if (engine == nullptr) return error(CANELE_EINVAL, "canele_on_peer: engine is NULL");
  if (fork::in_child) return reject_in_child("canele_on_peer");
  Engine& e = engine_of(engine);
  e.lock_for_callback();
  e.peer_watch.callback = callback;
  e.peer_watch.argument = argument;
  tell_of_ends(e);
  e.unlock();
  e.after_submit();
  return CANELE_OK;
} catch (...) {
  return caught();
}
