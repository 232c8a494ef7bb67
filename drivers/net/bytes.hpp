// SPDX-License-Identifier: BSD-3-Clause
//
// Little-endian numbers in byte arrays, the only form in which numbers travel between ranks.
//
// Pure functions for drivers; any thread. Bytes are shifted, never cast, so that any alignment and any host works. The
// compiler turns each function into one load or store.
#pragma once

#include <cstddef>
#include <cstdint>

namespace canele::drivers::net {

inline std::uint64_t read_le(const std::byte* from, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value |= std::to_integer<std::uint64_t>(from[i]) << (8 * i);
  return value;
}
inline std::uint16_t read_le16(const std::byte* from) { return static_cast<std::uint16_t>(read_le(from, 2)); }
inline std::uint32_t read_le32(const std::byte* from) { return static_cast<std::uint32_t>(read_le(from, 4)); }
inline std::uint64_t read_le64(const std::byte* from) { return read_le(from, 8); }

inline void write_le(std::byte* to, std::uint64_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) to[i] = static_cast<std::byte>(value >> (8 * i));
}

}  // namespace canele::drivers::net
