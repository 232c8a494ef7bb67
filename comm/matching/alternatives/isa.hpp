// SPDX-License-Identifier: BSD-3-Clause
//
// Isa: the vector instructions that a structure uses. Chosen at its creation, from those that the processor supports.
//
// Used by alternatives/ and the tests. Constant: any thread may call these functions.
//
// Only the functions marked with CANELE_TARGET_* are compiled for more than the base architecture. So a program runs on
// every x86-64 processor. It also runs on all other processors, where all code is scalar.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#define CANELE_X86 1
#define CANELE_TARGET_AVX2 __attribute__((target("avx2,popcnt,bmi")))
#define CANELE_TARGET_AVX512 __attribute__((target("avx512f,avx512bw,avx2,popcnt,bmi")))
#else
#define CANELE_X86 0
#endif

namespace canele::comm::matching {

enum class Isa : std::uint8_t { scalar, avx2, avx512 };

inline bool has_isa(Isa isa) noexcept {
#if CANELE_X86
  if (isa == Isa::avx512) return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0;
  if (isa == Isa::avx2) return __builtin_cpu_supports("avx2") != 0;
#endif
  return isa == Isa::scalar;
}

inline Isa best_isa() noexcept {
  if (has_isa(Isa::avx512)) return Isa::avx512;
  return has_isa(Isa::avx2) ? Isa::avx2 : Isa::scalar;
}

}  // namespace canele::comm::matching
