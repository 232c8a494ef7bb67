// SPDX-License-Identifier: BSD-3-Clause
//
// What becomes due under the lock, and is done before the lock is left: credit is granted, and backlogs are flushed.
//
// Any thread may call it, under the engine's lock. It is a header, because every way out of the lock calls it.
#pragma once

#include "comm/engine/engine.hpp"
#include "comm/link/transmit.hpp"
#include "comm/protocol/credit_receiver.hpp"
#include "comm/protocol/one_sided_target.hpp"

namespace canele::comm {

inline void Engine::flush_backlogged() {
  if ((credit.windows_due.size() | one_sided.totals_due.size()) != 0) [[unlikely]] {
    credit_receiver::refill_all(*this);
    one_sided::acknowledge_all(*this);
  }
  while (!backlogged_peers.empty()) {
    Peer* p = backlogged_peers.back();
    backlogged_peers.pop_back();
    p->backlogged = false;
    link::flush(*this, *p);
  }
}

}  // namespace canele::comm
