// SPDX-License-Identifier: BSD-3-Clause
//
// The built-in drivers and strategies.
#include "comm/registry/registry.hpp"

#include <type_traits>

#include "drivers/decorators/decorators.hpp"
#include "drivers/memory/cuda/cuda.hpp"
#include "drivers/self/self.hpp"
#include "drivers/shm/shm.hpp"
#include "drivers/tcp/tcp.hpp"

namespace canele::comm {
namespace {

const drivers::DriverFactory* const drivers_built_in[] = {&drivers::self_factory, &drivers::shm_factory,
                                                          &drivers::tcp_factory};
const drivers::MemoryFactory* const memory_built_in[] = {&drivers::cuda_memory_factory};
const strategies::StrategyFactory* const strategies_built_in[] = {
    &strategies::fifo_factory, &strategies::aggregate_factory, &strategies::priority_factory};

template <typename Factories>
auto find(const Factories& factories, std::string_view name) -> std::remove_cvref_t<decltype(factories[0])> {
  for (const auto* factory : factories) {
    if (factory->name == name) return factory;
  }
  return nullptr;
}

}  // namespace

std::span<const drivers::DriverFactory* const> all_drivers() { return drivers_built_in; }
const drivers::DriverFactory* find_driver(std::string_view name) { return find(drivers_built_in, name); }
std::unique_ptr<drivers::Driver> decorate(std::string_view list, std::unique_ptr<drivers::Driver> driver,
                                          std::string* error) {
  return drivers::decorate(list, std::move(driver), error);
}
std::span<const drivers::MemoryFactory* const> all_memory_kinds() { return memory_built_in; }
std::span<const strategies::StrategyFactory* const> all_strategies() { return strategies_built_in; }
const strategies::StrategyFactory* find_strategy(std::string_view name) { return find(strategies_built_in, name); }

std::unique_ptr<drivers::Driver> with_checksums(std::unique_ptr<drivers::Driver> driver) {
  return drivers::with_checksums(std::move(driver));
}

}  // namespace canele::comm
