// SPDX-License-Identifier: BSD-3-Clause
//
// Puts and gets that this process makes by itself, in registered memory of another process: the driver's copy by the
// calling thread, while the target has given a permit.
//
// Any thread, without the engine's lock. An operation may go this way only if no earlier one of its lane is on its way
// by packets, so that it cannot overtake one. It is over everywhere when the call returns.
#pragma once

#include <atomic>
#include <cstdint>

#include "comm/state/one_sided.hpp"

namespace canele::comm::post {

/// Returns whether a put or get of `length` bytes may go this way, and costs least so. slot: of its notification, 0: it
/// has none. Inline, because each short put asks, and most go another way.
[[gnu::always_inline]] inline bool may_go_directly(const one_sided::RemoteKey& key, const one_sided::Lane& lane,
                                                   std::uint64_t length, std::uint32_t slot) {
  constexpr std::uint64_t longest = 256 * 1024;  // both ends copy a longer one, as a message
  // A shorter one costs less if it leaves in a packet with others, or with its notification.
  constexpr std::uint64_t shortest_among_others = 1024;
  if (length < shortest_among_others && (slot != 0 || !lane.just_flushed.load(std::memory_order_relaxed))) return false;
  if (length == 0 || length > longest || key.direct.load(std::memory_order_relaxed) == nullptr) return false;
  return lane.effects.load(std::memory_order_acquire) == 0;  // release: confirm()
}

/// Makes a put or get for which may_go_directly() is true. Returns false, with no byte read by the program or written
/// for good, if it has to go by packets: the operation is then made again, as a whole.
bool access_directly(one_sided::RemoteKey& key, one_sided::Lane& lane, drivers::RmaOp op, std::uint64_t offset,
                     const canele_data_t& data);

}  // namespace canele::comm::post
