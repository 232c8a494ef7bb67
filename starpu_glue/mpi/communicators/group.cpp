// SPDX-License-Identifier: BSD-3-Clause
//
// Groups and their handles.
//
// MPI_GROUP_EMPTY is a handle like any other, except that freeing it does nothing.
#include "starpu_glue/mpi/communicators/group.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/core/handles.hpp"

namespace canele::mpi {
namespace {

constinit HandlePool<RanksPointer, MPI_Group, Kind::group, 1, 1024> groups_pool;

}  // namespace

Ranks::Ranks(std::vector<int> world, SessionBuffer session)
    : count_(static_cast<int>(world.size())), world_(std::move(world)), session_(std::move(session)) {
  sorted_.resize(world_.size());
  std::iota(sorted_.begin(), sorted_.end(), 0);
  std::sort(sorted_.begin(), sorted_.end(), [this](int a, int b) { return world_rank(a) < world_rank(b); });
}

int Ranks::position(int world) const {
  if (sorted_.empty()) return world >= 0 && world < count_ ? world : MPI_UNDEFINED;
  const auto at = std::lower_bound(sorted_.begin(), sorted_.end(), world,
                                   [this](int rank, int wanted) { return world_rank(rank) < wanted; });
  return at != sorted_.end() && world_rank(*at) == world ? *at : MPI_UNDEFINED;
}

RanksPointer find_group(MPI_Group handle) {
  if (handle == MPI_GROUP_EMPTY) return std::make_shared<const Ranks>(0);
  const RanksPointer* ranks = groups_pool.find(handle);
  return ranks == nullptr ? nullptr : *ranks;
}

int get_group(MPI_Group handle, RanksPointer* found) {
  *found = find_group(handle);
  if (*found != nullptr) return MPI_SUCCESS;
  return fail(MPI_ERR_GROUP, "0x%zx is not a group, or was freed", handle_bits(handle));
}

int new_group(RanksPointer ranks, MPI_Group* handle) {
  if (ranks->size() == 0) {
    *handle = MPI_GROUP_EMPTY;
    return MPI_SUCCESS;
  }
  MPI_Group made = MPI_GROUP_NULL;
  RanksPointer* slot = groups_pool.acquire(&made);
  if (slot == nullptr) return fail(MPI_ERR_NO_MEM, "no memory or no handle left for another group");
  *slot = std::move(ranks);
  *handle = made;
  return MPI_SUCCESS;
}

int new_group(std::vector<int> world_ranks, const Ranks& from, MPI_Group* handle) {
  return new_group(std::make_shared<const Ranks>(std::move(world_ranks), from.session()), handle);
}

int compare(const Ranks& first, const Ranks& second) {
  if (first.size() != second.size()) return MPI_UNEQUAL;
  int result = MPI_CONGRUENT;
  for (int rank = 0; rank < first.size(); ++rank) {
    const int world = first.world_rank(rank);
    if (second.world_rank(rank) == world) continue;
    if (second.position(world) == MPI_UNDEFINED) return MPI_UNEQUAL;
    result = MPI_SIMILAR;
  }
  return result;
}

void free_group(MPI_Group handle) {
  RanksPointer* slot = groups_pool.find(handle);
  if (slot == nullptr) return;
  slot->reset();
  groups_pool.release(handle);
}

}  // namespace canele::mpi
