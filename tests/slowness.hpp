// SPDX-License-Identifier: BSD-3-Clause
//
// How much slower tests run in this build. Who: tests; any thread.
// Surprise: under sanitizers the longest tests do as much less as they are slower, so that they take as long as ever:
//     what a sanitizer sees, it sees in the first laps.
#pragma once

namespace canele::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int slowness = 4;
#else
inline constexpr int slowness = 1;
#endif

}  // namespace canele::test
