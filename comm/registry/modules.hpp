// SPDX-License-Identifier: BSD-3-Clause
//
// Modules: drivers that are loaded on demand, and the list of drivers that a user has asked for.
//
// api/ uses them at start and for canele-info. Any thread may call these functions; each call reads the file system.
//
// A module is never closed: its factory, and the fabric's library behind it, live as long as the process.
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
  bool with_previous = false;  ///< joined to the previous driver by +
};

struct Module {
  std::string name;     ///< "ofi" of canele-driver-ofi.so
  std::string file;     ///< "" if no file was found
  std::string problem;  ///< why there is no factory
  const drivers::DriverFactory* factory = nullptr;
};

/// Opens the module called `name`. Searches the directories of `path` (colon-separated), then canele/ beside this
/// library.
Module open_module(std::string_view name, std::string_view path);

/// Opens all modules that it finds in these directories.
std::vector<Module> open_modules(std::string_view path);

/// Parses the value of CANELE_DRIVERS into a list of drivers, with self first. Returns false if a name is wrong; *why
/// then says which one, and what is expected.
bool choose_drivers(std::string_view list, std::string_view path, std::vector<DriverChoice>* chosen, std::string* why);

}  // namespace canele::comm
