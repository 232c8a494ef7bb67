// SPDX-License-Identifier: BSD-3-Clause
//
// The task that tells the program which peers have ended.
#include "comm/engine/peer_watch.hpp"

#include <algorithm>
#include <string>

#include "comm/engine/engine.hpp"

namespace canele::comm {
namespace {

/// A peer's end, as the program is told of it.
struct End {
  canele_peer_fn callback = nullptr;
  void* argument = nullptr;
  int rank = -1, state = CANELE_PEER_LOST;
  std::string why;
};

/// Takes the next peer whose end is to be told. Returns false, and ends the task, if there is none.
bool take_end(Engine& engine, End& end) {
  engine.lock_for_callback();
  PeerWatch& watch = engine.peer_watch;
  const auto found = std::find_if(engine.active_peers.begin(), engine.active_peers.end(),
                                  [](const auto& peer) { return peer->disconnected() && !peer->end_told; });
  const bool any = watch.callback != nullptr && found != engine.active_peers.end();
  if (any) {
    Peer& peer = **found;
    peer.end_told = true;
    const int state = peer.state == Peer::State::left ? CANELE_PEER_LEFT : CANELE_PEER_LOST;
    end = {watch.callback, watch.argument, peer.rank, state, peer.reason};
  } else {
    watch.submitted = false;
  }
  engine.unlock();
  return any;
}

void tell(ltask::Task& task) {
  Engine& engine = *static_cast<PeerWatch&>(task).engine;
  End end;
  while (take_end(engine, end)) {
    ++callbacks_on_this_thread;
    end.callback(reinterpret_cast<canele_engine_t*>(&engine), end.rank, end.state, end.why.c_str(), end.argument);
    --callbacks_on_this_thread;
  }
}

}  // namespace

void tell_of_ends(Engine& engine) {
  PeerWatch& watch = engine.peer_watch;
  if (watch.callback == nullptr || watch.submitted) return;
  watch.submitted = true;
  watch.engine = &engine;
  watch.prepare(tell);
  engine.tasks.submit(watch);
}

}  // namespace canele::comm
