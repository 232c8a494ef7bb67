// SPDX-License-Identifier: BSD-3-Clause
//
// Dynamic windows: each rank attaches memory to the window and detaches it, without a call of the other ranks.
//
// Called by window.cpp, window_place.cpp and api_window.cpp. Any thread. Functions return MPI codes.
//
//     target   attach ─▶ WindowRegions in its control memory: a table of keys, with a generation
//     origin   reads the generation before each operation ─▶ RegionCache: opened keys of that generation
//
// So an origin never uses memory that was detached and attached anew. On one host that read is a copy. Elsewhere it is
// a round trip.
//
// Rejected: reading the table when the engine says that a key is revoked. The operation is lost by then, and a flush
// does not tell which one it was.
#pragma once

#include <mpi.h>

#include "starpu_glue/mpi/windows/window.hpp"

namespace canele::mpi {

int attach_memory(Window& window, void* base, MPI_Aint size);
int detach_memory(Window& window, const void* base);

/// Attached memory of a rank, in its address space.
struct AttachedRange {
  std::uint64_t low, high;  ///< its addresses are [low, high)
  std::uint64_t start;      ///< address at which the memory of the key begins
  canele_key_t* key;
};

/// Finds the attached memory of a rank that has bytes of [low, high), by ascending addresses: one range if it has all
/// of them. The target is ready. MPI_ERR_RMA_RANGE: there is none.
int find_attached_ranges(Window& window, int rank, std::uint64_t low, std::uint64_t high,
                         std::vector<AttachedRange>* found);

/// Returns MPI_ERR_RMA_RANGE: a rank has not attached all of the `length` bytes at an address.
int not_attached(int rank, std::uint64_t address, std::uint64_t length);

/// Frees what is attached, and lists the keys that have to be closed.
void detach_all(Window& window);
std::vector<canele_key_t*> region_keys(const Window& window);

}  // namespace canele::mpi
