// SPDX-License-Identifier: BSD-3-Clause
//
// The clock of a program whose steps are counted: it can be stopped.
//
// Who: path_budget, mpi_budget. Threads: any.
// Surprise: it replaces the C library's clock_gettime, for libraries, too. Under callgrind everything takes fifty times
//     as long, and what is done "every millisecond" would be done in every other step.
#pragma once

namespace canele::test::budget {

void stop_clock(bool stopped);

}  // namespace canele::test::budget
