// SPDX-License-Identifier: BSD-3-Clause
//
// The known name nearest to a mistyped one, for "did you mean ...?".
//
// Used by the settings and by the registry of drivers and strategies. Pure functions, for any thread. A name too far
// from all known ones gets no suggestion: a wrong guess is worse than none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace canele::comm {

/// Returns the least number of insertions, deletions, replacements and exchanges of adjacent letters that turn `a` into
/// `b`. No position changes twice (optimal string alignment). O(|a| |b|) time, O(|b|) memory.
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

/// Returns the name of `known` nearest to `name`. Returns an empty name if more than a third of it (and more than two
/// letters) differs. In a name of up to three letters only one may differ: "on" is not meant to be "off".
inline std::string_view nearest_name(std::string_view name, std::span<const std::string_view> known) {
  std::string_view best;
  std::size_t best_distance = (name.size() <= 3 ? 1 : std::max<std::size_t>(2, name.size() / 3)) + 1;
  for (const std::string_view candidate : known) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace canele::comm
