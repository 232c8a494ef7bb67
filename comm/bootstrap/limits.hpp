// SPDX-License-Identifier: BSD-3-Clause
//
// What all bootstraps have in common: limits on what is published, the host's name.
//
// Who: the implementations of Bootstrap. Threads: any; no state.
// Surprise: keys get the prefix "canele." on their way out, so that other libraries in the process cannot clash.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <string>
#include <string_view>

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

inline std::string host_name() {
  char name[256] = "";
  return gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "localhost";
}

}  // namespace canele::comm
