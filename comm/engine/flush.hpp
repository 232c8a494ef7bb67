// SPDX-License-Identifier: BSD-3-Clause
//
// What becomes due under the lock, and is done before the lock is left: credit is granted, and backlogs are flushed.
//
// Any thread may call it, under the engine's lock. It is a header, because every way out of the lock calls it.
#pragma once

#include "comm/engine/engine.hpp"
#include "comm/link/transmit.hpp"
#include "comm/protocol/credit_receiver.hpp"
#include "comm/protocol/one_sided_owner.hpp"

namespace canele::comm {

inline void Engine::flush_backlogged() {
  if (!credit.windows_due.empty()) [[unlikely]]
    credit_receiver::refill_all(*this);
  if (!one_sided.totals_due.empty()) [[unlikely]]
    one_sided::acknowledge_all(*this);
  while (!backlogged_peers.empty()) {
    Peer* p = backlogged_peers.back();
    backlogged_peers.pop_back();
    p->backlogged = false;
    link::flush(*this, *p);
  }
}

}  // namespace canele::comm
