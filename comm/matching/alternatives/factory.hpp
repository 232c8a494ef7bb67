// SPDX-License-Identifier: BSD-3-Clause
//
// Alternatives by name.
//
// Used at the engine's start (CANELE_EXPERT_MATCHER), by tests and by benchmarks. Any thread may call it.
//
// For "table" the result is nullptr, which tells Matcher to use the table. An unknown name gives nullptr as well,
// because the settings have rejected it before.
//
//   CountingMatcher matcher(seed, matching::make_alternative(name, seed));      // feed it: post, arrive, store, ...
//   matcher.statistics().total.attempts;  matcher.statistics().search_length;  matcher.bytes();
#pragma once

#include <memory>
#include <string_view>

#include "comm/matching/alternative.hpp"
#include "comm/matching/alternatives/cache_warmer.hpp"
#include "comm/matching/alternatives/isa.hpp"

namespace canele::comm::matching {

/// Creates one of known_matchers (comm/config/names.hpp). `isa`: for vector and fuzzy; the processor must support it.
/// `regions` (arrays, vector, fuzzy): receives all memory that holds entries; must outlive the result.
std::unique_ptr<Alternative> make_alternative(std::string_view name, std::uint64_t seed, Isa isa = best_isa(),
                                              Regions* regions = nullptr);

}  // namespace canele::comm::matching
