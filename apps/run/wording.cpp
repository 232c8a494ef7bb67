// SPDX-License-Identifier: BSD-3-Clause
//
// Names of ranks and states.
#include "apps/run/wording.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace canele::run {

std::string name_numbers(const std::vector<int>& numbers, const char* between) {
  std::string text;
  for (std::size_t begin = 0, end; begin < numbers.size(); begin = end) {
    for (end = begin + 1; end < numbers.size() && numbers[end] == numbers[end - 1] + 1;) ++end;
    if (!text.empty()) text += between;
    text += std::to_string(numbers[begin]);
    if (end - begin > 1) text += fmt::format("{}{}", end - begin == 2 ? between : "-", numbers[end - 1]);
  }
  return text;
}

std::string name_ranks(std::vector<int> ranks, int of) {
  std::sort(ranks.begin(), ranks.end());
  if (ranks.size() > 1 && ranks.size() == static_cast<std::size_t>(of)) return fmt::format("all {} ranks", of);
  return (ranks.size() == 1 ? "rank " : "ranks ") + name_numbers(ranks, ", ");
}

std::string name_state(char state) {
  switch (state) {
    case 'R':
      return "running";
    case 'S':
      return "asleep";
    case 'D':
      return "in a system call that cannot be interrupted";
    case 'T':
      return "stopped";
    case 't':
      return "stopped by a debugger";
    default:
      return "about to end";
  }
}

std::string name_states(const std::map<char, std::vector<int>>& states, int of) {
  std::string text;
  for (const auto& [state, ranks] : states)
    text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", name_ranks(ranks, of), ranks.size() == 1 ? "is" : "are",
                        name_state(state));
  return text;
}

}  // namespace canele::run
