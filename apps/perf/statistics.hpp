// SPDX-License-Identifier: BSD-3-Clause
//
// Statistics of batches: median and percentiles. Threads: pure functions.
//
// There is no mean and no deviation, because one descheduled batch would spoil both.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <vector>

namespace canele::perf {

/// Returns the value below which `fraction` of the samples lie, interpolated between neighbours.
inline double quantile(std::vector<double> samples, double fraction) {
  assert(!samples.empty() && fraction >= 0 && fraction <= 1);
  std::sort(samples.begin(), samples.end());
  const double place = fraction * static_cast<double>(samples.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, samples.size() - 1);
  return samples[below] + (place - static_cast<double>(below)) * (samples[above] - samples[below]);
}

struct Summary {
  double median, p10, p90;
};

inline Summary summarise(const std::vector<double>& samples) {
  return {quantile(samples, 0.5), quantile(samples, 0.1), quantile(samples, 0.9)};
}

}  // namespace canele::perf
