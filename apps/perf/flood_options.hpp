// SPDX-License-Identifier: BSD-3-Clause
//
// What the user asked of a flood.
//
// Who: options fills it, flood reads it. Threads: one.
// Surprise: the messages are per sender: seven senders bring seven times as many.
#pragma once

#include <cstdint>
#include <vector>

namespace canele::perf {

struct FloodOptions {
  std::vector<int> senders = {1, 7};
  std::uint64_t messages = 0;      ///< of each sender; 0: by the size
  std::uint64_t limit = 64 << 20;  ///< CANELE_UNEXPECTED_MEMORY
  std::uint64_t per_peer = 0;      ///< CANELE_UNEXPECTED_PER_PEER; 0: as the engine chooses
  std::uint64_t allow = 0;         ///< most that a receiver may grow by; 0: the limit and a tenth
  bool both = false;               ///< the receiver floods the senders, too
};

}  // namespace canele::perf
