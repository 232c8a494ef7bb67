// SPDX-License-Identifier: BSD-3-Clause
//
// SipHash-2-4 (Aumasson, Bernstein 2012): a keyed hash of 64 bits, to prove knowledge of the job's secret.
//
// Used by the handshake, by ofi and psm2 for proofs in their own messages, and for fingerprints under a known key. A
// pure function: any thread.
//
// SipHash is a pseudo-random function, not a general cryptographic hash. Proofs are safe under a secret 128-bit key;
// under a known key they prove nothing. No library of Debian has it as a documented function, and it takes 40 lines.
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "drivers/net/bytes.hpp"

namespace canele::drivers::net {

/// Returns the hash of `data`. `key` is 16 bytes.
inline std::uint64_t siphash24(std::span<const std::byte> key, std::span<const std::byte> data) {
  assert(key.size() == 16);
  const std::uint64_t k0 = read_le64(key.data());
  const std::uint64_t k1 = read_le64(key.data() + 8);
  std::uint64_t a = k0 ^ 0x736f6d6570736575u;
  std::uint64_t b = k1 ^ 0x646f72616e646f6du;
  std::uint64_t c = k0 ^ 0x6c7967656e657261u;
  std::uint64_t d = k1 ^ 0x7465646279746573u;
  const auto rounds = [&](int count) {
    for (; count > 0; --count) {
      a += b, b = std::rotl(b, 13) ^ a, a = std::rotl(a, 32);
      c += d, d = std::rotl(d, 16) ^ c;
      a += d, d = std::rotl(d, 21) ^ a;
      c += b, b = std::rotl(b, 17) ^ c, c = std::rotl(c, 32);
    }
  };
  const auto absorb = [&](std::uint64_t word) { d ^= word, rounds(2), a ^= word; };
  const std::size_t whole = data.size() & ~std::size_t{7};
  for (std::size_t i = 0; i < whole; i += 8) absorb(read_le64(data.data() + i));
  absorb(read_le(data.data() + whole, data.size() - whole) | (std::uint64_t{data.size()} << 56));
  c ^= 0xff;
  rounds(4);
  return a ^ b ^ c ^ d;
}

}  // namespace canele::drivers::net
