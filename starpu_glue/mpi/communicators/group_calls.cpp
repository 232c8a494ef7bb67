// SPDX-License-Identifier: BSD-3-Clause
//
// The MPI_Group_ functions, called by their entry points. Any thread: a list of ranks never changes.
#include <climits>
#include <cstdlib>
#include <span>
#include <vector>

#include "calls/groups.hpp"
#include "starpu_glue/mpi/communicators/communicator.hpp"
#include "starpu_glue/mpi/communicators/group.hpp"
#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/core/state.hpp"

namespace canele::mpi {
namespace {

int check_member(const Ranks& group, int rank) {
  if (rank >= 0 && rank < group.size()) return MPI_SUCCESS;
  return fail(MPI_ERR_RANK, "rank %d is not in the group of %d", rank, group.size());
}

/// Marks the ranks of a list in the order of the group. Returns an MPI code, also for a rank that is named twice.
int mark(const Ranks& group, std::span<const int> chosen, std::vector<char>* marks) {
  marks->assign(static_cast<std::size_t>(group.size()), 0);
  for (const int rank : chosen) {
    if (const int code = check_member(group, rank); code != MPI_SUCCESS) return code;
    if ((*marks)[static_cast<std::size_t>(rank)]++ != 0) return fail(MPI_ERR_RANK, "rank %d is named twice", rank);
  }
  return MPI_SUCCESS;
}

/// Makes the group of the chosen ranks, in the order of the list.
int include(const Ranks& group, std::span<const int> chosen, MPI_Group* made) {
  std::vector<char> marks;
  if (const int code = mark(group, chosen, &marks); code != MPI_SUCCESS) return code;
  std::vector<int> list;
  for (const int rank : chosen) list.push_back(group.world_rank(rank));
  return new_group(std::move(list), group, made);
}

/// Makes the group of all other ranks, in the order of the group.
int exclude(const Ranks& group, std::span<const int> chosen, MPI_Group* made) {
  std::vector<char> marks;
  if (const int code = mark(group, chosen, &marks); code != MPI_SUCCESS) return code;
  std::vector<int> list;
  for (int rank = 0; rank < group.size(); ++rank) {
    if (marks[static_cast<std::size_t>(rank)] == 0) list.push_back(group.world_rank(rank));
  }
  return new_group(std::move(list), group, made);
}

/// Lists the ranks of ranges: first, last and step of each.
int expand(const Ranks& group, int count, const int (*ranges)[3], std::vector<int>* chosen) {
  for (int i = 0; i < count; ++i) {
    const int first = ranges[i][0], last = ranges[i][1], step = ranges[i][2];
    if (step == 0) return fail(MPI_ERR_ARG, "the step of range %d is 0", i);
    for (const int end : {first, last}) {
      if (const int code = check_member(group, end); code != MPI_SUCCESS) return code;
    }
    for (int rank = first; step > 0 ? rank <= last : rank >= last; rank += step) {
      chosen->push_back(rank);
      if (chosen->size() > static_cast<std::size_t>(group.size()))
        return fail(MPI_ERR_RANK, "the ranges name a rank twice");
      if (std::abs(static_cast<long>(step)) > group.size()) break;  // `rank` does not overflow
    }
  }
  return MPI_SUCCESS;
}

/// Checks that no more ranks are chosen than the group has.
int check_choice(const Ranks& group, int n) {
  if (n <= group.size()) return MPI_SUCCESS;
  return fail(MPI_ERR_ARG, "n is %d; the group has %d ranks", n, group.size());
}

std::span<const int> list_of(int n, const int* ranks) { return {ranks, static_cast<std::size_t>(n)}; }

/// Lists the ranks of `first`, in its order, that are in `second`, or those that are not.
std::vector<int> select(const Ranks& first, const Ranks& second, bool are_in_second) {
  std::vector<int> list;
  for (int rank = 0; rank < first.size(); ++rank) {
    const int world = first.world_rank(rank);
    if ((second.position(world) != MPI_UNDEFINED) == are_in_second) list.push_back(world);
  }
  return list;
}

}  // namespace

namespace calls {

int group_size(const RanksPointer& group, int* size) {
  *size = group->size();
  return MPI_SUCCESS;
}

int group_rank(const RanksPointer& group, int* rank) {
  *rank = group->position(canele_rank(engine()));
  return MPI_SUCCESS;
}

int group_incl(const RanksPointer& group, int n, const int ranks[], MPI_Group* newgroup) {
  const int code = check_choice(*group, n);
  return code == MPI_SUCCESS ? include(*group, list_of(n, ranks), newgroup) : code;
}

int group_excl(const RanksPointer& group, int n, const int ranks[], MPI_Group* newgroup) {
  const int code = check_choice(*group, n);
  return code == MPI_SUCCESS ? exclude(*group, list_of(n, ranks), newgroup) : code;
}

int group_range_incl(const RanksPointer& group, int n, int ranges[][3], MPI_Group* newgroup) {
  std::vector<int> chosen;
  const int code = expand(*group, n, ranges, &chosen);
  return code == MPI_SUCCESS ? include(*group, chosen, newgroup) : code;
}

int group_range_excl(const RanksPointer& group, int n, int ranges[][3], MPI_Group* newgroup) {
  std::vector<int> chosen;
  const int code = expand(*group, n, ranges, &chosen);
  return code == MPI_SUCCESS ? exclude(*group, chosen, newgroup) : code;
}

int group_union(const RanksPointer& group1, const RanksPointer& group2, MPI_Group* newgroup) {
  std::vector<int> list;
  for (int rank = 0; rank < group1->size(); ++rank) list.push_back(group1->world_rank(rank));
  const std::vector<int> others = select(*group2, *group1, false);
  list.insert(list.end(), others.begin(), others.end());
  return new_group(std::move(list), *group1, newgroup);
}

int group_intersection(const RanksPointer& group1, const RanksPointer& group2, MPI_Group* newgroup) {
  return new_group(select(*group1, *group2, true), *group1, newgroup);
}

int group_difference(const RanksPointer& group1, const RanksPointer& group2, MPI_Group* newgroup) {
  return new_group(select(*group1, *group2, false), *group1, newgroup);
}

int group_compare(const RanksPointer& group1, const RanksPointer& group2, int* result) {
  const int found = compare(*group1, *group2);
  *result = found == MPI_CONGRUENT ? MPI_IDENT : found;
  return MPI_SUCCESS;
}

int group_translate_ranks(const RanksPointer& group1, int n, const int ranks1[], const RanksPointer& group2,
                          int ranks2[]) {
  for (int i = 0; i < n; ++i) {
    if (ranks1[i] == MPI_PROC_NULL) {
      ranks2[i] = MPI_PROC_NULL;
      continue;
    }
    if (const int code = check_member(*group1, ranks1[i]); code != MPI_SUCCESS) return code;
    ranks2[i] = group2->position(group1->world_rank(ranks1[i]));
  }
  return MPI_SUCCESS;
}

int group_free(MPI_Group* group) {
  RanksPointer ranks;
  const int code = get_group(*group, &ranks);
  if (code != MPI_SUCCESS) return code;
  free_group(*group);
  *group = MPI_GROUP_NULL;
  return MPI_SUCCESS;
}

}  // namespace calls
}  // namespace canele::mpi
