// SPDX-License-Identifier: BSD-3-Clause
//
// The shapes of a multicast: who hands the data to whom, and which shape is expected to be the fastest.
//
// Who: multicast.cpp, and tests. Threads: any; no state.
// Surprise: positions, not ranks: 0 is the root, 1 to n are the destinations, the most urgent first; a lower position
//     is served no later than a higher one.
//
//     flat  0 ─▶ 1 2 3 4 …      chain  0 ─▶ 1 ─▶ 2 ─▶ 3 …      k-nomial  a position p of the round [k^r, k^(r+1)) is
//     served by p mod k^r, so that in each round everybody who has the data serves k - 1 more (k = 2: binomial)
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "strategies/strategy.hpp"

namespace canele::comm::multicast {

enum class Shape : std::uint8_t { automatic, flat, chain, binomial, four_nomial, eight_nomial };
inline constexpr Shape shapes[] = {Shape::flat, Shape::chain, Shape::binomial, Shape::four_nomial, Shape::eight_nomial};

std::string_view name_of(Shape shape);
/// automatic for a word that names none.
Shape shape_named(std::string_view name);

/// Who serves position `p` (from 1 on).
std::uint32_t server_of(Shape shape, std::uint32_t p);

/// No position but the root serves more in any shape of so many destinations: a route has to fit into an envelope.
inline constexpr std::uint32_t most_served = 64;
/// More destinations than that are served flat.
inline constexpr std::uint32_t most_destinations = 4096;

/// What has to come before it is handed on, bytes: of data that is fetched, see stage_bulk() in protocol/pump.cpp; a
/// stream is handed on as it comes in.
inline constexpr std::uint64_t fetched_piece = 64 * 1024, streamed_piece = 4 * 1024;

/// Expected time in ns until the last of `count` destinations has `size` bytes, if each link costs what `link` says and
/// everybody sends to all that he serves at the same time, sharing his link, and hands each `piece` on that has come.
/// `rendezvous`: data moves after a round trip.
double time_of(Shape shape, std::uint32_t count, std::uint64_t size, const strategies::Costs& link, bool rendezvous,
               std::uint64_t piece);

/// The shape with the lowest expected time; a message of `eager` bytes at most costs no round trip if it is sent flat.
Shape choose(std::uint32_t count, std::uint64_t size, const strategies::Costs& link, std::uint64_t eager,
             std::uint64_t piece);

}  // namespace canele::comm::multicast
