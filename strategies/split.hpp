// SPDX-License-Identifier: BSD-3-Clause
//
// Split: how a large transfer is divided over the rails of a peer, so that all of them end together.
//
// Pure functions; any thread may call them.
//
// A rail that becomes idle takes the next slice. So rates that are wrong cost one slice at most. Near the end a rail
// takes what lets it end with the others, or nothing:
//
//     quick  ████████████████████████████████████│
//     slow   ████████████████████████████        │     a slice of 8 more would end behind this line
//
// Source of the formula: the equal-finish split of NewMadeleine's multirail, with latency and the data under way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "strategies/strategy.hpp"

namespace canele::strategies::split {

inline constexpr std::uint64_t shortest_slice = 64 * 1024;
inline constexpr std::uint64_t longest_slice = 512 * 1024;
inline constexpr double slice_ns = 250e3;      ///< a slice takes about so long, within the two limits
inline constexpr double least_gain_ns = 20e3;  ///< a split that gains less than this, or than least_gain, is not made
inline constexpr double least_gain = 0.1;
inline constexpr double slowest_share = 1. / 8;  ///< of the rate of the quickest rail; slower rails carry no share

/// Returns how many of the `rest` bytes that no rail has taken yet the rail rails[asking] takes now. 0: none, because
/// the data is there sooner if other rails carry it. For some usable rail it is above 0. rest > 0.
std::uint64_t slice(std::uint64_t rest, std::span<const RailLoad> rails, std::size_t asking);

/// Returns when `bytes` bytes end, in nanoseconds from now, if the rails with a bit in `members` carry them.
double finish_ns(std::uint64_t bytes, std::span<const RailLoad> rails, std::uint64_t members);

}  // namespace canele::strategies::split
