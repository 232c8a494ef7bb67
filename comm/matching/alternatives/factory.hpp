// SPDX-License-Identifier: BSD-3-Clause
//
// Alternatives by name.
//
// Who: the engine's start (CANELE_MATCHER), tests, benchmarks. Threads: any.
// Surprise: "table" gives nullptr, which is what Matcher takes for "use the table"; so does a name that there is not,
//     because the settings have refused it before.
//
//   CountingMatcher matcher(seed, matching::make_alternative(name, seed));      // feed it: post, arrive, store, ...
//   matcher.statistics().total.attempts;  matcher.statistics().search_length;  matcher.bytes();
#pragma once

#include <memory>
#include <string_view>

#include "comm/matching/alternatives/alternative.hpp"
#include "comm/matching/alternatives/heater.hpp"
#include "comm/matching/alternatives/isa.hpp"

namespace canele::comm::matching {

/// One of known_matchers (comm/config/names.hpp). `isa`: for vector and fuzzy; the processor must have it. `regions`
/// (arrays, vector, fuzzy): told of all memory that entries are kept in; outlives what is made.
std::unique_ptr<Alternative> make_alternative(std::string_view name, std::uint64_t seed, Isa isa = best_isa(),
                                              Regions* regions = nullptr);

}  // namespace canele::comm::matching
