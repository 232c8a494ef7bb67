// SPDX-License-Identifier: BSD-3-Clause
//
// WorkerPlacement: the cores that the worker of an engine may take.
//
// Any thread. `mutex` is held while the worker is placed.
#pragma once

#include <memory>
#include <mutex>

#include "ltask/core_register.hpp"

namespace canele::comm {

struct WorkerPlacement {
  std::mutex mutex{};
  std::unique_ptr<ltask::CoreRegister> cores;  ///< of the processes of this host; may be nullptr
  const bool on_this_machine;                  ///< workers may choose a core: no simulation
  /// The threads of the program want all cores, so there is an on-demand thread instead of a worker.
  bool no_core_for_worker = false;
};

}  // namespace canele::comm
