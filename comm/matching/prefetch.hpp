// SPDX-License-Identifier: BSD-3-Clause
//
// Sends for a cache line that will be needed. It may be any address: nothing happens if it is none.
//
// Who: matching and protocol/, instead of __builtin_prefetch. Threads: any.
// Surprise: the empty asm. To GCC a function that does nothing but __builtin_prefetch has no effect, and it deletes the
//     calls of it.
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
