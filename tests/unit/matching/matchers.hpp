// SPDX-License-Identifier: BSD-3-Clause
//
// Every matcher, for tests that all must pass; and the obvious model with which they are compared.
//
// For tests/unit/matching, tests/exhaustive. One thread. vector and fuzzy are listed once for each set of instructions;
// the test skips a set that the processor lacks.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <list>
#include <string>

#include "comm/matching/alternatives/factory.hpp"
#include "comm/matching/matcher.hpp"

namespace canele::comm {

struct MatcherKind {
  const char* name;
  matching::Isa isa = matching::Isa::scalar;
  const char* suffix = "";

  bool available() const { return matching::has_isa(isa); }
  std::unique_ptr<matching::Alternative> make(std::uint64_t seed) const {
    return matching::make_alternative(name, seed, isa);
  }
};

inline constexpr MatcherKind all_matchers[] = {
    {"table"},
    {"list"},
    {"bins"},
    {"peers"},
    {"arrays"},
    {"vector", matching::Isa::scalar, "_scalar"},
    {"vector", matching::Isa::avx2, "_avx2"},
    {"vector", matching::Isa::avx512, "_avx512"},
    {"fuzzy", matching::Isa::scalar, "_scalar"},
    {"fuzzy", matching::Isa::avx2, "_avx2"},
    {"fuzzy", matching::Isa::avx512, "_avx512"},
};

inline std::string name_of(const testing::TestParamInfo<MatcherKind>& info) {
  return std::string(info.param.name) + info.param.suffix;
}

/// Reads a number from the environment: campaigns use larger numbers, and other seeds, than a normal run.
inline std::uint64_t from_environment(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// What matching means, in the most obvious way: two lists in order.
class Model {
 public:
  struct Receive {
    std::int32_t source;
    std::uint64_t tag, mask;
    PostedNode* node;
  };
  struct Message {
    std::int32_t source;
    std::uint64_t tag;
    UnexpectedNode* node;
  };
  static bool fits(std::int32_t source, std::uint64_t tag, std::uint64_t mask, const Message& m) {
    return (source == rank_any || source == m.source) && ((tag ^ m.tag) & mask) == 0;
  }
  UnexpectedNode* find(std::int32_t source, std::uint64_t tag, std::uint64_t mask) const {
    const auto it =
        std::find_if(messages.begin(), messages.end(), [&](const Message& m) { return fits(source, tag, mask, m); });
    return it == messages.end() ? nullptr : it->node;
  }
  /// Returns the receive that would get a message, and leaves it where it is.
  PostedNode* next(std::int32_t source, std::uint64_t tag) const {
    const auto it = std::find_if(receives.begin(), receives.end(), [&](const Receive& r) {
      return fits(r.source, r.tag, r.mask, {source, tag, nullptr});
    });
    return it == receives.end() ? nullptr : it->node;
  }
  PostedNode* arrive(std::int32_t source, std::uint64_t tag) {
    PostedNode* node = next(source, tag);
    if (node != nullptr) cancel(node);
    return node;
  }
  void take(UnexpectedNode* node) {
    messages.remove_if([&](const Message& m) { return m.node == node; });
  }
  void cancel(PostedNode* node) {
    receives.remove_if([&](const Receive& r) { return r.node == node; });
  }
  std::list<Receive> receives;
  std::list<Message> messages;
};

}  // namespace canele::comm
