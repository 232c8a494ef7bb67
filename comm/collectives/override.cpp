// SPDX-License-Identifier: BSD-3-Clause
//
// Parsing of CANELE_COLLECTIVES.
#include "comm/collectives/override.hpp"

namespace canele::comm::collectives {
namespace {

template <typename Each>
void for_each_operation(Each each) {
  for (int i = 0; i < operations; ++i) each(static_cast<Operation>(i));
}

std::string all_operations() {
  std::string names;
  for_each_operation([&](Operation one) { names.append(names.empty() ? "" : ", ").append(name_of(one)); });
  return names;
}

bool operation_named(std::string_view name, Operation* found) {
  bool there = false;
  for_each_operation([&](Operation one) {
    if (name_of(one) != name) return;
    *found = one;
    there = true;
  });
  return there;
}

/// Parses one pair, as in "bcast=chain".
bool parse_pair(std::string_view pair, AlgorithmOverrides* overrides, std::string* why) {
  const std::size_t equals = pair.find('=');
  const std::string_view name = pair.substr(0, equals);
  Operation operation{};
  if (equals == std::string_view::npos || !operation_named(name, &operation)) {
    *why =
        "\"" + std::string(pair) + "\"; expected: OPERATION=ALGORITHM with one of the operations " + all_operations();
    return false;
  }
  const std::string_view word = pair.substr(equals + 1);
  const Algorithm algorithm = algorithm_named(word);
  if (word != "auto" && (algorithm == Algorithm::automatic || !has(operation, algorithm))) {
    *why = "\"" + std::string(pair) + "\"; expected for " + std::string(name) + ": auto, " + algorithms_of(operation);
    return false;
  }
  (*overrides)[static_cast<std::size_t>(operation)] = algorithm;
  return true;
}

}  // namespace

std::string algorithms_of(Operation operation) {
  std::string names;
  for (int i = 1; i < algorithms; ++i) {
    const auto algorithm = static_cast<Algorithm>(i);
    if (has(operation, algorithm)) names.append(names.empty() ? "" : ", ").append(name_of(algorithm));
  }
  return names;
}

bool parse_overrides(std::string_view text, AlgorithmOverrides* overrides, std::string* why) {
  overrides->fill(Algorithm::automatic);
  if (text == "auto") return true;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    std::string problem;
    if (!parse_pair(text.substr(0, comma), overrides, &problem)) {
      *why = "CANELE_COLLECTIVES: " + problem;
      return false;
    }
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  }
  return true;
}

}  // namespace canele::comm::collectives
