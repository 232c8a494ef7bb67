// SPDX-License-Identifier: BSD-3-Clause
//
// The conformance kit: one line makes every test of the driver contract for a driver.
//
//     CANELE_CONFORMANCE(tcp, canele::drivers::tcp_factory, {.dial = dial_tcp});
//
// For tests of drivers, ours and those of others. Used from the main thread, before main() and in it. The process that
// runs the tests never opens a driver: every rank is a child process. So drivers that allow one instance per process,
// and tests that kill or stop processes, need no second mechanism.
//
//   ctest process ──fork──▶ rank 0 … n-1: Job ──▶ Node (driver_kit.hpp) ──▶ the driver
//        │  launch.hpp         │
//        └─── a socket pair ───┘  addresses, barriers, "kill rank 2"
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/driver.hpp"

namespace canele::conformance {

/// What the kit needs to know of a driver. Every field may be left out.
struct Options {
  std::map<std::string, std::string> settings = {};     ///< CANELE_<name>, without the prefix.
  std::map<std::string, std::string> environment = {};  ///< for the fabric's own library.
  bool slow = false;               ///< a tenth of the messages, 8 processes instead of 32, no 2 GiB.
  bool authenticates = true;       ///< rejects a peer that does not know the job's secret.
  bool leaves_files = false;       ///< its library leaves files in /dev/shm after kill -9 (the kit removes them).
  bool keeps_descriptors = false;  ///< its library keeps descriptors after close()
  bool parts_survivors =
      false;  ///< a rank killed while it sends may cost survivors their connections: failed, not lost
  std::map<std::string, std::string> skips = {};  ///< test: the reason why this driver cannot pass it
  /// Returns a connected stream socket to the listener at an address, or -1. For drivers that use drivers/net's
  /// handshake.
  std::function<int(std::span<const std::byte>)> dial = {};
};

/// Registers all tests under the name `variant`. For Canelé's own drivers, known_drivers.cpp fixes what the driver must
/// declare and may skip.
bool add_driver(std::string_view variant, const drivers::DriverFactory& factory, Options options);

/// Runs the registered tests, prints the table of results and writes it below $CANELE_TEST_BUILD/results/conformance.
int run(int argc, char** argv);

int dial_tcp(std::span<const std::byte> address);
int dial_shm(std::span<const std::byte> address);

#define CANELE_CONFORMANCE(variant, factory, ...)     \
  static const bool canele_conformance_of_##variant = \
      canele::conformance::add_driver(#variant, factory, canele::conformance::Options __VA_ARGS__)

}  // namespace canele::conformance
