// SPDX-License-Identifier: BSD-3-Clause
//
// Names of drivers and strategies that users may ask for, whether this build has them or not.
//
// Who: settings (is it a name at all?), the info report (why is it not there?). Threads: constants.
// Surprise: the registry in comm/core knows what is built in; this list is longer, so that "not in this build" and "no
// such
//      name" are two different answers.
#pragma once

#include <string_view>

namespace canele::comm {

inline constexpr std::string_view known_drivers = "self shm tcp ofi psm2";
inline constexpr std::string_view known_strategies = "fifo aggregate priority";

/// For canele-info, where the driver itself is not there to say it.
struct AbsentDriver {
  std::string_view name, summary, why;
};
inline constexpr AbsentDriver drivers_to_come[] = {
    {"ofi", "libfabric: InfiniBand, Slingshot, EFA and others", "not part of this version of Canelé"},
    {"psm2", "Omni-Path", "not part of this version of Canelé"},
};

}  // namespace canele::comm
