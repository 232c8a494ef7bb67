// SPDX-License-Identifier: BSD-3-Clause
//
// What a rank has measured of a flood, and the report of all ranks. One thread.
//
// An outcome is sent as bytes between ranks of one host and one program.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "options.hpp"

namespace canele::perf {

inline constexpr std::array<const char*, 6> flood_counters = {"unexpected_messages",   "unexpected_most",
                                                              "unexpected_bytes_most", "credit_stalls",
                                                              "credit_blocked_most",   "credit_stalled_ns"};

struct FloodOutcome {
  std::uint64_t receives = 0;         ///< 1: it had something to receive
  std::uint64_t before = 0;           ///< resident bytes before the first send.
  std::uint64_t at_rest = 0;          ///< when all was sent and nothing moved any more.
  std::uint64_t most = 0, after = 0;  ///< maximum until the end, and value after it.
  std::uint64_t stored = 0;           ///< messages kept when all was sent.
  std::uint64_t sending_ns = 0, receiving_ns = 0;
  std::array<std::uint64_t, flood_counters.size()> counters{};

  std::uint64_t grown() const { return most > before ? most - before : 0; }
};

/// Prints the outcomes; all[0] is the receiver. Returns false, after a message, if a receiver took too much memory.
bool print_flood(const Options& options, std::uint64_t messages, const std::vector<FloodOutcome>& all);

}  // namespace canele::perf
