// SPDX-License-Identifier: BSD-3-Clause
//
// Coverage marks: places in the protocols that the simulator must have reached, and places where it makes a rare case
// common.
//
// Used by comm and ltask. They are counted only in a simulated world, which has one thread.
//
// They exist in the simulator's copy of the engine (CANELE_COVERAGE). In the library they expand to nothing.
//
//   CANELE_COVER(name);             this line was reached. In headers it is used only in static functions.
//                                   The variable of an inline function would be in a section of another kind.
//   CANELE_COVER_RARE(name);        a CANELE_COVER that takes thousands of runs. Only campaigns must reach it.
//   if (CANELE_BUGGIFY(name)) …     now and then true in a simulated world, never in the library.
//
// After FoundationDB's CODE_PROBE and BUGGIFY (flow/Buggify.h), and TigerBeetle's marks.
#pragma once

#ifdef CANELE_COVERAGE

namespace canele {

struct CoverageMark {
  const char* name;
  unsigned long hits;
};
/// Decides whether a CANELE_BUGGIFY is true at this place; nullptr: never.
inline bool (*buggify)(const CoverageMark& place) = nullptr;

}  // namespace canele

#define CANELE_COVER(name)                                                                                          \
  do {                                                                                                              \
    static ::canele::CoverageMark mark __attribute__((section("canele_coverage"), used, aligned(16))) = {#name, 0}; \
    ++mark.hits;                                                                                                    \
  } while (false)
#define CANELE_COVER_RARE(name) CANELE_COVER(~name)
#define CANELE_BUGGIFY(name)                                                                                       \
  ([]() -> bool {                                                                                                  \
    static ::canele::CoverageMark mark __attribute__((section("canele_buggify"), used, aligned(16))) = {#name, 0}; \
    const bool struck = ::canele::buggify != nullptr && ::canele::buggify(mark);                                   \
    mark.hits += struck ? 1 : 0;                                                                                   \
    return struck;                                                                                                 \
  }())

#else

#define CANELE_COVER(name) static_cast<void>(0)
#define CANELE_COVER_RARE(name) static_cast<void>(0)
#define CANELE_BUGGIFY(name) false

#endif
