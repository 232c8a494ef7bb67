// SPDX-License-Identifier: BSD-3-Clause
//
// Shared windows: places, memory, addresses.
//
// If the parts follow each other, all targets have the key of the first rank's memory, which is opened once.
#include "starpu_glue/mpi/windows/shared.hpp"

#include <algorithm>

#include "starpu_glue/mpi/core/error.hpp"

namespace canele::mpi {
namespace {

/// What a rank says about its part.
struct SharedWish {
  std::uint64_t size;
  std::uint64_t is_apart;  ///< the hint alloc_shared_noncontig
};

/// Opens and maps the memory of a target.
int map_part(Window& window, int rank) {
  WindowTarget& target = window.targets[rank];
  {
    const std::lock_guard guard(window.mutex);
    if (const int code = open_keys(window, target); code != MPI_SUCCESS) return code;
  }
  if (target.memory == nullptr) return MPI_SUCCESS;
  if (canele_key_rank(target.memory) == canele_rank(window.engine)) {
    target.address = static_cast<char*>(window.whole_base);  // the address that this rank's program has
    return MPI_SUCCESS;
  }
  void* address = nullptr;
  if (const int error = canele_key_map(target.memory, &address); error != CANELE_OK) return from_engine(error);
  target.address = static_cast<char*>(address);
  return MPI_SUCCESS;
}

}  // namespace

int agree_on_places(Window& window, const InfoPairs& hints) {
  const std::string* const apart = find_value(hints, "alloc_shared_noncontig");
  const SharedWish mine{static_cast<std::uint64_t>(window.size), apart != nullptr && *apart == "true" ? 1U : 0U};
  std::vector<SharedWish> all;
  if (const int code = exchange(window, mine, &all); code != MPI_SUCCESS) return code;
  window.is_joint = all.front().is_apart == 0;
  window.whole_size = mine.size;
  if (!window.is_joint) return MPI_SUCCESS;
  window.whole_size = 0;
  for (int rank = 0; rank < window.ranks(); ++rank) {
    if (rank == window.comm->rank()) window.first = window.whole_size;
    window.whole_size += all[static_cast<std::size_t>(rank)].size;
  }
  return MPI_SUCCESS;
}

int allocate_shared_part(Window& window, WindowCard& card) {
  card.first = window.first;
  if (window.is_joint && window.comm->rank() != 0) return MPI_SUCCESS;
  constexpr std::uint64_t kWord = 8;  // the last element of an atomic operation is within a whole word
  return from_engine(canele_memory_allocate(window.engine, (window.whole_size + kWord - 1) / kWord * kWord, nullptr,
                                            &window.whole_base, &window.memory));
}

int map_parts(Window& window) {
  int mine = map_part(window, 0);
  for (int rank = 1; rank < window.ranks() && mine == MPI_SUCCESS; ++rank) {
    WindowTarget& target = window.targets[rank];
    if (window.is_joint) {
      target.memory = window.targets[0].memory;
      target.address = window.targets[0].address;
    }
    if (mine == MPI_SUCCESS) mine = map_part(window, rank);
  }
  std::vector<int> all;
  if (const int code = exchange(window, mine, &all); code != MPI_SUCCESS) return code;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] != MPI_SUCCESS)
      return fail(MPI_ERR_RMA_SHARED, "rank %zu cannot map the memory of another; expected: ranks of one host", rank);
  }
  const WindowTarget& own = window.targets[window.comm->rank()];
  window.base = own.address + own.card.first;
  return MPI_SUCCESS;
}

int find_shared_part(const Window& window, int rank, MPI_Aint* size, int* unit, void** base) {
  if (window.flavor != MPI_WIN_FLAVOR_SHARED)
    return fail(MPI_ERR_RMA_FLAVOR, "the window was not made by MPI_Win_allocate_shared");
  if (rank == MPI_PROC_NULL) {
    for (rank = 0; rank < window.ranks() - 1 && window.targets[rank].card.size == 0;) ++rank;
  }
  if (!window.comm->has_rank(rank))
    return fail(MPI_ERR_RANK, "rank is %d; the window has the ranks 0 to %d", rank, window.ranks() - 1);
  const WindowTarget& target = window.targets[rank];
  *size = static_cast<MPI_Aint>(target.card.size);
  *unit = target.card.unit;
  *base = *size != 0 || window.is_joint ? target.address + target.card.first : nullptr;
  return MPI_SUCCESS;
}

}  // namespace canele::mpi
