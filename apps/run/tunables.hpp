// SPDX-License-Identifier: BSD-3-Clause
//
// Tunables of glibc for ranks that share processing units.
//
// Who: Job, once. Threads: one.
// Surprise: it changes what the kernel does in each switch between the ranks, not what they do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace canele::run {

/// glibc (2.35 and later) registers every thread for restartable sequences, and the kernel then looks after these
/// whenever it gives that thread the processor: 0.1 us of the 1.1 that a switch between two ranks takes (Linux 6.18).
/// Nobody needs that but programs with such sequences, which register themselves where glibc has not.
/// In: GLIBC_TUNABLES as it is. Out: the same, and that glibc shall not register; unless it says something of that
/// itself, whatever it be.
std::string without_restartable_sequences(std::string_view tunables);

/// The same in an environment ("NAME=value" each), if `ranks` are more than `places`.
void ease_switches(std::vector<std::string>& environment, int ranks, int places);

/// How many processing units the calling process may use.
int usable_units();

}  // namespace canele::run
