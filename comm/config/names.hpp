// SPDX-License-Identifier: BSD-3-Clause
//
// Names of drivers, strategies and matchers that users may ask for, whether this build has them or not.
//
// Who: settings (is it a name at all?), the info report (why is it not there?). Threads: constants.
// Surprise: the registry in comm/core knows what is built in; the drivers that come with Canelé as modules are named
//     here, so that "not built" and "no such name" are two different answers.
#pragma once

#include <string_view>

namespace canele::comm {

inline constexpr std::string_view built_in_drivers = "self shm tcp";
inline constexpr std::string_view known_strategies = "fifo aggregate priority";
inline constexpr std::string_view known_matchers = "table list bins peers arrays vector fuzzy";

/// Drivers that come as modules; what is said of one where its module is not there to say it.
struct ModuleName {
  std::string_view name, summary, library;
};
inline constexpr ModuleName known_modules[] = {
    {"ofi", "libfabric: InfiniBand, Slingshot, EFA and others", "libfabric"},
    {"psm2", "Omni-Path", "libpsm2"},
};

}  // namespace canele::comm
