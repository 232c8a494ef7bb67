// SPDX-License-Identifier: BSD-3-Clause
//
// CRC32C by instruction or table. See crc32c.hpp.
//
// The first call decides between the two, not the program's loading and not the compiler's flags: a distribution builds
// for the oldest machine.
#include "drivers/decorators/crc32c.hpp"

#include <array>
#include <cstring>

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace canele::drivers {
namespace {

constexpr std::uint32_t polynomial = 0x82f63b78;  // bit-reversed
constexpr std::size_t slices = 8;                 // bytes looked up at once
using Tables = std::array<std::array<std::uint32_t, 256>, slices>;

/// tables[k][b]: the effect of byte b on the sum k bytes later.
constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t sum = byte;
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ ((sum & 1) != 0 ? polynomial : 0);
    tables[0][byte] = sum;
  }
  for (std::size_t k = 1; k < slices; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}
constexpr Tables tables = make_tables();

using Sum = std::uint32_t (*)(std::uint32_t, const void*, std::size_t) noexcept;

#if defined(__x86_64__)
#define CANELE_WITH_CRC32C __attribute__((target("sse4.2")))
CANELE_WITH_CRC32C inline std::uint32_t add_word(std::uint32_t sum, std::uint64_t word) noexcept {
  return static_cast<std::uint32_t>(__builtin_ia32_crc32di(sum, word));
}
CANELE_WITH_CRC32C inline std::uint32_t add_byte(std::uint32_t sum, unsigned char byte) noexcept {
  return __builtin_ia32_crc32qi(sum, byte);
}
bool has_instruction() noexcept { return __builtin_cpu_supports("sse4.2") != 0; }
#elif defined(__aarch64__) && defined(__GNUC__) && !defined(__clang__)
#define CANELE_WITH_CRC32C __attribute__((target("+crc")))
CANELE_WITH_CRC32C inline std::uint32_t add_word(std::uint32_t sum, std::uint64_t word) noexcept {
  return __builtin_aarch64_crc32cx(sum, word);
}
CANELE_WITH_CRC32C inline std::uint32_t add_byte(std::uint32_t sum, unsigned char byte) noexcept {
  return __builtin_aarch64_crc32cb(sum, byte);
}
bool has_instruction() noexcept {
  constexpr unsigned long crc32_bit = 1ul << 7;  // HWCAP_CRC32
  return (::getauxval(AT_HWCAP) & crc32_bit) != 0;
}
#endif

#ifdef CANELE_WITH_CRC32C
CANELE_WITH_CRC32C std::uint32_t by_instruction(std::uint32_t before, const void* bytes, std::size_t size) noexcept {
  std::uint32_t sum = ~before;
  const auto* at = static_cast<const unsigned char*>(bytes);
  for (; size >= 8; size -= 8, at += 8) {
    std::uint64_t word;
    std::memcpy(&word, at, sizeof word);
    sum = add_word(sum, word);
  }
  for (; size > 0; --size) sum = add_byte(sum, *at++);
  return ~sum;
}
#else
constexpr Sum by_instruction = crc32c_by_table;
bool has_instruction() noexcept { return false; }
#endif

}  // namespace

std::uint32_t crc32c(std::uint32_t before, const void* bytes, std::size_t size) noexcept {
  static const Sum sum = has_instruction() ? Sum{by_instruction} : Sum{crc32c_by_table};
  return sum(before, bytes, size);
}

std::uint32_t crc32c_by_table(std::uint32_t before, const void* bytes, std::size_t size) noexcept {
  std::uint32_t sum = ~before;
  const auto* at = static_cast<const unsigned char*>(bytes);
  for (; size >= slices; size -= slices, at += slices) {
    const std::uint32_t low =
        sum ^ (at[0] | std::uint32_t{at[1]} << 8 | std::uint32_t{at[2]} << 16 | std::uint32_t{at[3]} << 24);
    sum = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff] ^ tables[4][low >> 24] ^
          tables[3][at[4]] ^ tables[2][at[5]] ^ tables[1][at[6]] ^ tables[0][at[7]];
  }
  for (; size > 0; --size) sum = (sum >> 8) ^ tables[0][(sum ^ *at++) & 0xff];
  return ~sum;
}

}  // namespace canele::drivers
