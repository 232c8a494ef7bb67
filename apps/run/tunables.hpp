// SPDX-License-Identifier: BSD-3-Clause
//
// Tunables of glibc for ranks that share processing units. Job calls it once, in one thread.
//
// It changes what the kernel does at each switch between the ranks, not what the ranks do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace canele::run {

/// Returns the tunables with the registration of restartable sequences switched off. `tunables`: the present
/// GLIBC_TUNABLES. A value for this tunable that is already there stays.
///
/// glibc (2.35 and later) registers every thread for restartable sequences. The kernel then checks them whenever it
/// gives that thread the processor, which is a noticeable part of a switch between two ranks (Linux 6.18). Only
/// programs with such sequences need that, and they register themselves if glibc has not.
std::string without_restartable_sequences(std::string_view tunables);

/// Applies without_restartable_sequences() to an environment ("NAME=value" each) if `ranks` is more than `places`.
void ease_switches(std::vector<std::string>& environment, int ranks, int places);

/// Returns how many processing units the calling process may use.
int usable_units();

}  // namespace canele::run
