// SPDX-License-Identifier: BSD-3-Clause
//
// Formats numbers as text, for people and for files. Any thread may call these functions.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace canele::comm {

/// Returns, for example, "0x2a".
inline std::string hexadecimal(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace canele::comm
