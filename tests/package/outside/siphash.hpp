// SPDX-License-Identifier: BSD-3-Clause
//
// SipHash-2-4 (Aumasson, Bernstein 2012) of whole words, as a proof that the sender knows a key. A pure function: any
// thread.
//
// Canelé has its own SipHash, but does not install it: a driver from outside has driver.hpp and nothing else.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

inline std::uint64_t siphash(std::span<const std::byte> key, std::span<const std::uint64_t> words) {
  std::uint64_t k[2] = {};
  std::memcpy(k, key.data(), std::min(key.size(), sizeof k));
  std::uint64_t v[4] = {k[0] ^ 0x736f6d6570736575u, k[1] ^ 0x646f72616e646f6du, k[0] ^ 0x6c7967656e657261u,
                        k[1] ^ 0x7465646279746573u};
  const auto mix = [&v](int a, int b, int turn) { v[b] = std::rotl(v[b], turn) ^ (v[a] += v[b]); };
  const auto rounds = [&](int count) {
    for (; count > 0; --count) {
      mix(0, 1, 13), mix(2, 3, 16), v[0] = std::rotl(v[0], 32);
      mix(0, 3, 21), mix(2, 1, 17), v[2] = std::rotl(v[2], 32);
    }
  };
  const auto absorb = [&](std::uint64_t word) { v[3] ^= word, rounds(2), v[0] ^= word; };
  for (const std::uint64_t word : words) absorb(word);
  absorb(std::uint64_t{words.size_bytes()} << 56);
  v[2] ^= 0xff, rounds(4);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}
