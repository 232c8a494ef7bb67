// SPDX-License-Identifier: BSD-3-Clause
//
// Registry: lists the built-in drivers and strategies. It is the only place in comm that names concrete ones.
//
// A driver is found because it is listed here, not because it is linked: there are no static constructors.
//
// The tables are constant, so any thread may read them. api/ does so at start.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "drivers/driver.hpp"
#include "drivers/memory.hpp"
#include "strategies/strategy.hpp"

namespace canele::comm {

std::span<const drivers::DriverFactory* const> all_drivers();
const drivers::DriverFactory* find_driver(std::string_view name);
/// Wraps a driver in the decorators that `list` names (CANELE_EXPERT_DECORATORS). Returns nullptr and sets *error if
/// the list is wrong.
std::unique_ptr<drivers::Driver> decorate(std::string_view list, std::unique_ptr<drivers::Driver> driver,
                                          std::string* error);
/// Wraps a driver so that no damaged packet is delivered (CANELE_CHECKSUM).
std::unique_ptr<drivers::Driver> with_checksums(std::unique_ptr<drivers::Driver> driver);
/// The kinds of device memory.
std::span<const drivers::MemoryFactory* const> all_memory_kinds();
std::span<const strategies::StrategyFactory* const> all_strategies();
const strategies::StrategyFactory* find_strategy(std::string_view name);

}  // namespace canele::comm
