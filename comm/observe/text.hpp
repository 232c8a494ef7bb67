// SPDX-License-Identifier: BSD-3-Clause
//
// Numbers as text, for people and for files.
//
// Who: observe/. Threads: any. Surprise: none.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace canele::comm {

/// "0x2a"
inline std::string hexadecimal(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace canele::comm
