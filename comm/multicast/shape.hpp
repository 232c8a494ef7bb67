// SPDX-License-Identifier: BSD-3-Clause
//
// The shapes of a multicast: which rank forwards the data to which, and which shape is expected to be the fastest.
//
// Any thread may call these functions; they have no state.
//
// Positions are not ranks: 0 is the root, and 1 to n are the destinations, the most urgent first. A lower position
// gets the data no later than a higher one.
//
//     flat  0 ─▶ 1 2 3 4 …      chain  0 ─▶ 1 ─▶ 2 ─▶ 3 …      k-nomial  a position p of the round [k^r, k^(r+1)) is
//     is a child of p mod k^r, so that in each round all that have the data send to k - 1 more each (k = 2: binomial)
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "strategies/strategy.hpp"

namespace canele::comm::multicast {

enum class Shape : std::uint8_t { automatic, flat, chain, binomial, four_nomial, eight_nomial };
inline constexpr Shape shapes[] = {Shape::flat, Shape::chain, Shape::binomial, Shape::four_nomial, Shape::eight_nomial};

std::string_view name_of(Shape shape);
/// Returns the shape with this name, or automatic if there is none.
Shape shape_named(std::string_view name);

/// Returns the parent of position `p` (from 1 on).
std::uint32_t parent_of(Shape shape, std::uint32_t p);

/// The most children that a position other than the root has, in any shape of up to most_destinations. Limited because
/// a route has to fit into an envelope.
inline constexpr std::uint32_t most_children = 64;
/// More destinations than that are sent to flat.
inline constexpr std::uint32_t most_destinations = 4096;

/// How many bytes have to come before they are forwarded. fetched_piece: of data that is fetched, see stage_bulk() in
/// link/transmit.cpp. streamed_piece: of a stream, which is forwarded as it comes in.
inline constexpr std::uint64_t fetched_piece = 64 * 1024, streamed_piece = 4 * 1024;

/// Returns the expected time, in ns, until the last of `count` destinations has `size` bytes. The model: each link
/// costs what `link` says. Each position sends to all its children at the same time, sharing its link, and
/// forwards each `piece` bytes that have come. `rendezvous`: data moves after a round trip.
double time_of(Shape shape, std::uint32_t count, std::uint64_t size, const strategies::Costs& link, bool rendezvous,
               std::uint64_t piece);

/// Returns the shape with the lowest expected time. If sent flat, a message of at most `eager` bytes costs no round
/// trip.
Shape choose(std::uint32_t count, std::uint64_t size, const strategies::Costs& link, std::uint64_t eager,
             std::uint64_t piece);

}  // namespace canele::comm::multicast
