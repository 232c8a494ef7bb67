// SPDX-License-Identifier: BSD-3-Clause
//
// Names of drivers, strategies and matchers that users may ask for, whether this build has them or not.
//
// Constants for any thread. The settings use them to check names, the info report to explain missing drivers. The
// registry in comm/registry knows what is built in. Drivers that come with Canelé as modules are named here. So "not
// built" and "no such name" are two different answers.
#pragma once

#include <string_view>

namespace canele::comm {

inline constexpr std::string_view built_in_drivers = "self shm tcp";
inline constexpr std::string_view known_strategies = "fifo aggregate priority";
inline constexpr std::string_view known_matchers = "table list bins peers arrays vector fuzzy";

/// Drivers that come as modules, with the texts to use if the module itself is missing.
struct ModuleName {
  std::string_view name, summary, library;
};
inline constexpr ModuleName known_modules[] = {
    {"ofi", "libfabric: InfiniBand, Slingshot, EFA and others", "libfabric"},
    {"psm2", "Omni-Path", "libpsm2"},
};

}  // namespace canele::comm
