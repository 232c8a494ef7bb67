// SPDX-License-Identifier: BSD-3-Clause
//
// CRC32C (Castagnoli), as in iSCSI and ext4: finds every error of up to 32 bits in a row, and of any three bits in a
// packet.
//
// Who: checksum.cpp and tests. Threads: any; no state.
// Surprise: it protects from accidents only. Whoever can change the bytes can change the sum.
#pragma once

#include <cstddef>
#include <cstdint>

namespace canele::drivers {

/// The sum of `size` bytes behind those whose sum is `before` (0: none). By the processor's instruction, if it has one.
std::uint32_t crc32c(std::uint32_t before, const void* bytes, std::size_t size) noexcept;

/// The same from a table, on any machine.
std::uint32_t crc32c_by_table(std::uint32_t before, const void* bytes, std::size_t size) noexcept;

}  // namespace canele::drivers
