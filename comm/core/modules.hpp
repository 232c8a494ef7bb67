// SPDX-License-Identifier: BSD-3-Clause
//
// Modules: drivers that are opened on demand, and the list of drivers that a user asked for.
//
// Who: api/, at start and for canele-info.
// Threads: any; each call looks at the file system.
// Surprise: a module is never closed: its factory, and the fabric's library behind it, live as long as the process.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "drivers/driver.hpp"

namespace canele::comm {

/// One driver to open, as CANELE_DRIVERS names it.
struct DriverChoice {
  DriverChoice(const drivers::DriverFactory* its_factory) : factory(its_factory) {}  // NOLINT: a name without more
  const drivers::DriverFactory* factory;
  std::string argument;        ///< "eth0" of "tcp:eth0"
  bool with_previous = false;  ///< joined to the one before it by +
};

struct Module {
  std::string name;     ///< "ofi" of canele-driver-ofi.so
  std::string file;     ///< "" if there is none
  std::string problem;  ///< why there is no factory
  const drivers::DriverFactory* factory = nullptr;
};

/// Opens the module of that name out of the directories of `path` (colon-separated), then of canele/ beside this
/// library.
Module open_module(std::string_view name, std::string_view path);

/// Opens all modules that there are.
std::vector<Module> open_modules(std::string_view path);

/// In: the value of CANELE_DRIVERS. Out: the drivers, self first. False: *why says which name is wrong and what would
/// be right.
bool choose_drivers(std::string_view list, std::string_view path, std::vector<DriverChoice>* chosen, std::string* why);

}  // namespace canele::comm
