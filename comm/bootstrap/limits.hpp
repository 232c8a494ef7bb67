// SPDX-License-Identifier: BSD-3-Clause
//
// What all bootstraps have in common: limits on what is published, names of fences, hosts, jobs and ranks.
//
// Used by the implementations of Bootstrap, on any thread; there is no state. Published keys get the prefix "canele.",
// so that other libraries in the process cannot clash with them.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace canele::comm {

inline constexpr std::size_t longest_blob = std::size_t{64} << 10;
inline constexpr std::size_t longest_key = 255;
inline constexpr std::string_view key_prefix = "canele.";

inline bool check_entry(std::string_view key, std::size_t size, std::string* why) {
  if (key.empty() || key.size() > longest_key) {
    *why = "a key has 1 to " + std::to_string(longest_key) + " characters, this one " + std::to_string(key.size());
    return false;
  }
  if (size > longest_blob) {
    *why = "'" + std::string(key) + "' has " + std::to_string(size) + " bytes; at most " +
           std::to_string(longest_blob) + " can be published";
    return false;
  }
  return true;
}

inline constexpr std::uint64_t ns_per_second = 1'000'000'000;
/// A question without an answer is asked again, after a pause that grows.
inline constexpr std::uint64_t first_pause = 5'000'000, longest_pause = 500'000'000;  // ns.
/// Returns how long (ns) a rank of a job of `ranks` ranks waits at the end. The launcher must let it go, and tell which
/// ranks are still there. A launcher serves ranks one after the other.
inline constexpr std::uint64_t goodbye_of(int ranks) {
  return 5 * ns_per_second + static_cast<std::uint64_t>(ranks) * (ns_per_second / 50);
}
inline constexpr std::uint64_t survey_of(int ranks) { return goodbye_of(ranks); }

inline constexpr const char* failed_fence = "an earlier wait for all ranks has failed";

/// Returns the key that a rank publishes before each fence, so that waiting ranks can be told which ranks are missing.
inline std::string fence_key(std::uint64_t number) { return "at-fence-" + std::to_string(number); }

inline std::string host_name() {
  char name[256] = "";
  return gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "localhost";
}

/// Returns the FNV-1a hash (64 bits) of the launcher's name for the job.
inline std::uint64_t fingerprint(std::string_view text) {
  std::uint64_t value = 0xcbf29ce484222325u;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return value;
}

/// Returns a list in words: "rank 2", "ranks 2, 5 and 7", "ranks 0, 1, 2 and 40 others".
inline std::string list_ranks(const std::vector<int>& ranks) {
  assert(!ranks.empty());
  constexpr std::size_t most = 8;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  const std::size_t shown = std::min(most, ranks.size());
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  if (shown < ranks.size()) text += " and " + std::to_string(ranks.size() - shown) + " others";
  return text;
}

}  // namespace canele::comm
