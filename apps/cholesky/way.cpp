// SPDX-License-Identifier: BSD-3-Clause
//
// The ways by name. The names are in the order of canele_shape.
#include "way.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace canele::cholesky {
namespace {

constexpr std::array<const char*, 6> shapes = {"auto", "flat", "chain", "binomial", "4-nomial", "8-nomial"};

}  // namespace

std::vector<std::string> way_names() {
  std::vector<std::string> names = {"sends"};
  names.insert(names.end(), shapes.begin(), shapes.end());
  return names;
}

Way way_of(const std::string& name) {
  if (name == "sends") return {name, true, CANELE_SHAPE_AUTO};
  const auto* const found = std::find(shapes.begin(), shapes.end(), name);
  if (found == shapes.end())
    throw std::runtime_error("no way to send tiles is called " + name + "; expected: sends, or a shape of a multicast");
  return {name, false, static_cast<canele_shape>(found - shapes.begin())};
}

}  // namespace canele::cholesky
