// SPDX-License-Identifier: BSD-3-Clause
//
// Lifecycle: what an engine joined its job with, and what it still needs of the launcher.
//
// Constant after Engine::create(), so any thread may read it; `resolving` belongs to the engine's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/bootstrap/bootstrap.hpp"
#include "comm/config/settings.hpp"
#include "comm/state/under_lock.hpp"

namespace canele::strategies {
struct StrategyFactory;
}

namespace canele::comm {

struct Lifecycle {
  std::unique_ptr<Settings> settings;
  std::unique_ptr<Bootstrap> bootstrap;
  const strategies::StrategyFactory& strategy;
  bool checksums = false;                     ///< around every driver, see drivers/decorators/checksum.cpp
  long process;                               ///< to detect a fork
  std::vector<std::byte> secret;              ///< by which ranks of the job prove themselves to each other
  bool serves_bootstrap = false;              ///< the bootstrap has no thread of its own
  std::uint64_t resolving CANELE_LOCKED = 0;  ///< queries to the launcher under way
};

}  // namespace canele::comm
