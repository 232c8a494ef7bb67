// SPDX-License-Identifier: BSD-3-Clause
//
// Audit: what an engine keeps twice must agree.
//
// Who: the world, when a rank's body is over. Threads: a fiber of that rank.
// Surprise: a leak of a window's bytes stops nobody in a short run; here it is seen at once.
#pragma once

#include <string>

namespace canele::comm {
class Engine;
}

namespace canele::sim {

/// "" or what does not agree.
std::string audit(comm::Engine& engine);

}  // namespace canele::sim
