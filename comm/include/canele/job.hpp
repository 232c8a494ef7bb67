// SPDX-License-Identifier: BSD-3-Clause
//
// job.hpp - the other ranks of the job in C++20: a thin layer on <canele/job.h>, beside <canele/canele.hpp>.
//
// Threads: any, as in job.h.
//
//     canele::on_peer(engine, [](canele_engine_t*, int rank, int, const char* why, void*) { give_up(rank, why); });
#ifndef CANELE_JOB_HPP
#define CANELE_JOB_HPP

#include <canele/job.h>

#include <canele/canele.hpp>

namespace canele {

/// Returns what this rank knows of `rank`: see canele_peer_state. Throws canele::error.
inline enum canele_peer_state peer_state(const engine& of, int rank) {
  const int state = canele_peer_state(of.native(), rank);
  if (state < 0) detail::refused(state, "canele_peer_state");
  return static_cast<enum canele_peer_state>(state);
}

/// Reports each peer that ends to `callback` (nullptr: no longer): see canele_on_peer. `callback` must not throw.
/// Throws canele::error.
inline void on_peer(engine& of, canele_peer_fn callback, void* argument = nullptr) {
  detail::check(canele_on_peer(of.native(), callback, argument), "canele_on_peer");
}

}  // namespace canele

#endif
