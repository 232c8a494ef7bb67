// SPDX-License-Identifier: BSD-3-Clause
//
// Filter for a thread that polls for an earlier message. Messages of a range of tags stay with their driver, until it
// has presented one `patience` times. (A stored message is copied twice.)
//
// Used under the engine's lock, by the thread that polls.
#pragma once

#include <cstdint>

#include "comm/state/request.hpp"

namespace canele::comm {

struct DeferFilter {
  const Session* session = nullptr;  ///< nullptr: all messages are taken
  std::uint64_t first_tag = 0, end_tag = 0;
  int patience = 0;
  const Request* awaited = nullptr;  ///< a receive whose message may lie behind other messages of its rank
  bool defers(std::uint64_t tag, std::int32_t source) {
    return tag >= first_tag && tag < end_tag && !may_come_before(source) && patience-- > 0;
  }
  bool may_come_before(std::int32_t source) const {
    if (awaited == nullptr || awaited->finalized()) return false;
    return awaited->receive.node.source == source || awaited->receive.node.source == rank_any;
  }
};

}  // namespace canele::comm
