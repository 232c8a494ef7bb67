// SPDX-License-Identifier: BSD-3-Clause
//
// Options of a flood. One thread.
//
// The number of messages is per sender: seven senders send seven times as many.
#pragma once

#include <cstdint>
#include <vector>

namespace canele::perf {

struct FloodOptions {
  std::vector<int> senders = {1, 7};
  std::uint64_t messages = 0;      ///< of each sender; 0: by the size
  std::uint64_t limit = 64 << 20;  ///< CANELE_UNEXPECTED_MEMORY
  std::uint64_t per_peer = 0;      ///< CANELE_EXPERT_UNEXPECTED_PER_PEER; 0: as the engine chooses.
  std::uint64_t allow = 0;         ///< limit of a receiver's growth; 0: the limit plus a tenth
  bool both = false;               ///< the receiver floods the senders, too
};

}  // namespace canele::perf
