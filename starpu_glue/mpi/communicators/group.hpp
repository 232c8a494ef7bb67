// SPDX-License-Identifier: BSD-3-Clause
//
// Groups: ordered lists of ranks of MPI_COMM_WORLD, shared by communicators and group handles.
//
// Any thread may use a list, because it never changes. The list of MPI_COMM_WORLD is implicit (identity), so it takes
// no memory in a large job.
#pragma once

#include <mpi.h>

#include <memory>
#include <utility>
#include <vector>

#include "starpu_glue/mpi/communicators/send_buffer.hpp"

namespace canele::mpi {

/// Ranks that were got from a session use its memory for buffered sends, also those of groups and communicators that
/// are made of them.
using SessionBuffer = std::shared_ptr<SendBufferPlace>;

class Ranks {
 public:
  /// Ranks 0 to count - 1 of MPI_COMM_WORLD.
  explicit Ranks(int count, SessionBuffer session = nullptr) : count_(count), session_(std::move(session)) {}
  /// These ranks of MPI_COMM_WORLD, in this order. `session`: see below.
  explicit Ranks(std::vector<int> world, SessionBuffer session = nullptr);

  int size() const { return count_; }
  /// Returns the world ranks in order; nullptr for the identity list.
  const int* list() const { return world_.empty() ? nullptr : world_.data(); }
  int world_rank(int rank) const { return world_.empty() ? rank : world_[static_cast<std::size_t>(rank)]; }
  /// Returns the position of a rank of MPI_COMM_WORLD, or MPI_UNDEFINED.
  int position(int world) const;
  /// Returns what is attached to the session that the ranks were got from; null for those of MPI_COMM_WORLD.
  const SessionBuffer& session() const { return session_; }

 private:
  int count_;
  std::vector<int> world_;   // empty: identity
  std::vector<int> sorted_;  // positions in the order of their world ranks
  SessionBuffer session_;
};

using RanksPointer = std::shared_ptr<const Ranks>;

/// Returns the list of a live handle, else nullptr. Returns a copy, because the handle may be freed meanwhile.
RanksPointer find_group(MPI_Group handle);
/// Looks a group up like find_group, but returns an MPI code and sets the detail.
int get_group(MPI_Group handle, RanksPointer* found);
/// Makes a handle for the list. Returns an MPI code.
int new_group(RanksPointer ranks, MPI_Group* handle);
/// Makes a group out of another one.
int new_group(std::vector<int> world_ranks, const Ranks& from, MPI_Group* handle);
void free_group(MPI_Group handle);

/// Compares two lists as MPI_Comm_compare does: MPI_CONGRUENT (the same ranks in the same order), MPI_SIMILAR or
/// MPI_UNEQUAL.
int compare(const Ranks& first, const Ranks& second);

}  // namespace canele::mpi
