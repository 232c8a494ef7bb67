// SPDX-License-Identifier: BSD-3-Clause
//
// Attended: gives a bootstrap without a thread of its own (PMI-1) one, which sleeps until the launcher speaks.
//
// Who: join.cpp. Threads: any, as bootstrap.hpp says; answers and deaths come on the thread in here, as with PMIx.
// Surprise: an engine that serves the launcher itself looks at it in every step, on the path of every small message.
//     The thread spares that. Where no thread is to be had the engine does so still.
//
//   engine ──▶ Attended ──▶ Pmi1Bootstrap ◀── the thread: poll(its descriptor, bell_)
#pragma once

#include "comm/bootstrap/process_bootstrap.hpp"

namespace canele::comm {

/// `inner` itself, if it is nullptr or needs no thread, or if there is no thread to be had.
std::unique_ptr<ProcessBootstrap> attend(Platform& platform, std::unique_ptr<ProcessBootstrap> inner);

}  // namespace canele::comm
