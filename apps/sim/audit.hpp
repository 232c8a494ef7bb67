// SPDX-License-Identifier: BSD-3-Clause
//
// Audit: what an engine keeps twice must agree.
//
// The world calls it when a rank's body has ended, in a fiber of that rank (one thread). A leak of a window's bytes
// stops no rank in a short run; this check finds it at once.
#pragma once

#include <string>

namespace canele::comm {
class Engine;
}

namespace canele::sim {

/// Returns what does not agree, or "".
std::string audit(comm::Engine& engine);

}  // namespace canele::sim
