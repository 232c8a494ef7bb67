// SPDX-License-Identifier: BSD-3-Clause
//
// Decorators: drivers that wrap any driver, chosen at run time, to trace it, slow it, disturb it or check it.
//
// The engine applies them between DriverFactory::create() and Driver::open(). drivers/driver.hpp gives the threading of
// the result. The first in the list is the outermost: with "check,fault" the faults are checked too. An empty list
// returns the driver itself, so an absent decorator costs nothing.
//
//   list:   decorator {"," decorator}        decorator:   name {":" option "=" value}
//
//     trace[:keep=N]               writes a line per call and callback to the log (level 3)
//                                  keep:       only the last N, when a peer fails and at the end (level 2)
//     delay[:us=N][:room=BYTES]    holds each packet and bulk piece back for N µs, in order
//     fault[:seed=N][:full=P][:burst=N][:short=P][:kill=N][:lose-rail=N][:rank=N]
//                                  full:       with probability P, answers full though there is room, for `burst` polls
//                                  short:      with probability P, asks bulk_destination() in small parts
//                                  kill:       reports `rank`, else the first to get there, as dead at its Nth packet
//                                  lose-rail:  reports all peers as failed, not lost, at the Nth packet in total
//     check                        reports violations of the contract by engine or driver (level 0)
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "drivers/driver.hpp"

namespace canele::drivers {

/// Wraps `driver` as `list` says. On failure returns nullptr, and *error says what is wrong and what is expected.
std::unique_ptr<Driver> decorate(std::string_view list, std::unique_ptr<Driver> driver, std::string* error);

/// Wraps `driver` so that no damaged data is delivered; see checksum.cpp. Both ends of a pair need it.
std::unique_ptr<Driver> with_checksums(std::unique_ptr<Driver> driver);

}  // namespace canele::drivers
