// SPDX-License-Identifier: BSD-3-Clause
//
// Prefetch hints for a cache line. Any address is allowed; an invalid one has no effect.
//
// Used by matching and protocol/ instead of __builtin_prefetch. Any thread may call these functions.
//
// The empty asm is needed: GCC sees no effect in a function with only a __builtin_prefetch, and deletes calls of it.
#pragma once

namespace canele::comm {

[[gnu::always_inline]] inline void prefetch_to_read(const void* line) noexcept {
  __builtin_prefetch(line);
  asm volatile("");
}

[[gnu::always_inline]] inline void prefetch_to_write(const void* line) noexcept {
  __builtin_prefetch(line, 1);
  asm volatile("");
}

}  // namespace canele::comm
