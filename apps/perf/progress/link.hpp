// SPDX-License-Identifier: BSD-3-Clause
//
// Link: what the benchmarks of progress need of a communication library, so that one source measures all of them.
//
// It is built with canele-perf on our native API, and with an MPI's compiler on that MPI (CANELE_PERF_MPI, by
// peers/progress.py). Threads: any thread may call isend, irecv and wait, if the link was made for threads. It is
// chosen at compile time, and inline: a call through it costs what the library's own call costs.
#pragma once

#ifdef CANELE_PERF_MPI
#include "link_mpi.hpp"
#else
#include "link_canele.hpp"
#endif

namespace canele::perf::progress {

/// Blocking send and receive.
inline void send(Link& link, int to, int tag, const void* data, std::size_t size) {
  Link::Request request{};
  link.isend(to, tag, data, size, request);
  link.wait(request);
}
inline void receive(Link& link, int from, int tag, void* data, std::size_t size) {
  Link::Request request{};
  link.irecv(from, tag, data, size, request);
  link.wait(request);
}
/// Copies rank 0's `data` to the `data` of all other ranks. All ranks call it.
inline void tell_all(Link& link, int tag, void* data, std::size_t size) {
  if (link.rank() != 0) return receive(link, 0, tag, data, size);
  for (int rank = 1; rank < link.size(); ++rank) send(link, rank, tag, data, size);
}

}  // namespace canele::perf::progress
