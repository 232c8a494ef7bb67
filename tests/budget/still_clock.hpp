// SPDX-License-Identifier: BSD-3-Clause
//
// A clock that can be stopped, for a program whose steps are counted. Any thread.
//
// It replaces the C library's clock_gettime, for libraries, too. Under callgrind everything takes fifty times as long,
// and work that is due "every millisecond" would otherwise be done in every other step.
#pragma once

namespace canele::test::budget {

void stop_clock(bool stopped);

}  // namespace canele::test::budget
