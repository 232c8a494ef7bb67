// SPDX-License-Identifier: BSD-3-Clause
//
// Attended: gives a bootstrap without a thread (PMI-1) one, which sleeps until the launcher sends something.
//
// Used by join.cpp. Any thread, as bootstrap.hpp says; answers and deaths come on the thread in here, as with PMIx.
// Without it the engine polls the launcher in every step, on the path of every small message. If the system has no
// thread, the engine does so still.
//
//   engine ──▶ Attended ──▶ Pmi1Bootstrap ◀── the thread: poll(its descriptor, bell_)
#pragma once

#include "comm/bootstrap/process_bootstrap.hpp"

namespace canele::comm {

/// Returns `inner` with a thread. Returns `inner` itself if it is nullptr, if it needs no thread, or if the system has
/// none.
std::unique_ptr<ProcessBootstrap> attend(Platform& platform, std::unique_ptr<ProcessBootstrap> inner);

}  // namespace canele::comm
