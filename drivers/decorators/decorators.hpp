// SPDX-License-Identifier: BSD-3-Clause
//
// Decorators: drivers that wrap any driver, chosen at run time, to watch it, slow it, disturb it or check it.
//
// Who: the engine, between DriverFactory::create() and Driver::open(). Threads: as driver.hpp says of a driver.
// Surprise: the first in the list is the outermost: with "check,fault" the faults are checked too. An empty list
//      returns the driver itself, so a decorator that is absent costs nothing.
//
//   list:   decorator {"," decorator}        decorator:   name {":" option "=" value}
//
//   trace[:keep=N]                       a line per call and call back to the log (level 3); keep: only the last N,
//   when
//                                        a peer fails and at the end (level 2)
//   delay[:us=N][:room=BYTES]            holds each packet and bulk piece back for N µs, in order
//   fault[:seed=N][:full=P][:burst=N][:short=P][:kill=N][:lose-rail=N][:rank=N]
//                                        P: a probability; full: answers full though there is room, for `burst` polls;
//                                        short: asks landing() in small parts; kill: reports one peer (`rank`, else
//                                        whoever is first) as dead at its Nth packet; lose-rail: all peers, not lost
//   check                                reports who breaks the contract, engine or driver (level 0)
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "drivers/driver.hpp"

namespace canele::drivers {

/// Wraps `driver` as `list` says. nullptr, and *error says what is wrong and what would be right.
std::unique_ptr<Driver> decorate(std::string_view list, std::unique_ptr<Driver> driver, std::string* error);

/// Wraps `driver` so that nothing damaged is delivered; see checksum.cpp. Both ends of a pair need it.
std::unique_ptr<Driver> with_checksums(std::unique_ptr<Driver> driver);

}  // namespace canele::drivers
