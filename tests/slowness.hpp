// SPDX-License-Identifier: BSD-3-Clause
//
// How much slower tests run in this build. Any thread.
//
// Under sanitizers the longest tests do less work by the same factor, so that they take as long as in other builds. A
// sanitizer finds its faults in the first laps.
#pragma once

namespace canele::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int slowness = 4;
#else
inline constexpr int slowness = 1;
#endif

}  // namespace canele::test
