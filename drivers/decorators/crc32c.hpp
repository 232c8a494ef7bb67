// SPDX-License-Identifier: BSD-3-Clause
//
// CRC32C (Castagnoli), as in iSCSI and ext4: finds every error of up to 32 consecutive bits, and of any three bits in a
// packet.
//
// Used by checksum.cpp and tests. No state: any thread. It protects from accidents only: an attacker that can change
// the bytes can change the sum.
#pragma once

#include <cstddef>
#include <cstdint>

namespace canele::drivers {

/// Returns the sum of `size` bytes behind those whose sum is `before` (0: none). Uses the processor's instruction, if
/// it has one.
std::uint32_t crc32c(std::uint32_t before, const void* bytes, std::size_t size) noexcept;

/// Computes the sum of crc32c() from a table, on any machine.
std::uint32_t crc32c_by_table(std::uint32_t before, const void* bytes, std::size_t size) noexcept;

}  // namespace canele::drivers
