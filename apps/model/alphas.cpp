// SPDX-License-Identifier: BSD-3-Clause
//
// Parses shares of converted calls.
#include "apps/model/alphas.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

namespace canele::model {
namespace {

constexpr std::size_t most_shares = 101;

[[noreturn]] void reject(const std::string& text) {
  throw std::runtime_error(
      fmt::format("--alpha {}: expected a share from 0 to 1, or several as 0,0.5,1 or as "
                  "from:to:step, up to {} of them",
                  text, most_shares));
}

std::vector<double> numbers_in(const std::string& text, char separator) {
  std::vector<double> numbers;
  std::size_t from = 0;
  while (from <= text.size()) {
    const std::size_t end = std::min(text.find(separator, from), text.size());
    const std::string word = text.substr(from, end - from);
    std::size_t used = 0;
    try {
      numbers.push_back(std::stod(word, &used));
    } catch (const std::exception&) {
      reject(text);
    }
    if (used != word.size()) reject(text);
    from = end + 1;
  }
  return numbers;
}

std::vector<double> sweep(const std::string& text) {
  const std::vector<double> ends = numbers_in(text, ':');
  if (ends.size() != 3 || !(ends[2] > 0) || ends[1] < ends[0]) reject(text);
  const double steps = (ends[1] - ends[0]) / ends[2] + 1e-9;
  if (!(steps < most_shares)) reject(text);
  std::vector<double> shares;
  for (std::size_t i = 0; i <= static_cast<std::size_t>(steps); ++i) {
    shares.push_back(std::min(ends[1], ends[0] + static_cast<double>(i) * ends[2]));
  }
  return shares;
}

}  // namespace

std::vector<double> parse_alphas(const std::string& text) {
  const std::vector<double> shares = text.find(':') != std::string::npos ? sweep(text) : numbers_in(text, ',');
  const bool good = std::all_of(shares.begin(), shares.end(), [](double share) { return share >= 0 && share <= 1; });
  if (!good || shares.size() > most_shares) reject(text);
  return shares;
}

}  // namespace canele::model
