// SPDX-License-Identifier: BSD-3-Clause
//
// New communicators, by agreement within the parent. They return MPI codes.
//
// Called by entry points and by the folders above. Any thread; as for collectives, one call at a time on a parent.
#pragma once

#include <canele/collectives.h>
#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "starpu_glue/mpi/communicators/communicator.hpp"
#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/datatypes/transfer.hpp"

namespace canele::mpi {

/// Implement MPI_Comm_dup, _split, _split_type, _create and _create_group. They communicate within the parent. The
/// first three and _create take intercommunicators, too, and then make such ones.
/// A duplicate has copies of the attributes, and the hints that it is given, or those of the parent.
int duplicate(Communicator& parent, const InfoPairs& hints, MPI_Comm* made);
/// Duplicates without messages: the label is that of the parent with a number that all ranks count. Communicates if the
/// label would be too long, which takes several duplicates of each other.
int duplicate_at_once(Communicator& parent, const InfoPairs& hints, MPI_Comm* made);
/// Makes a duplicate for the library's own use: without a handle. The caller owns its reference.
int duplicate_unnamed(Communicator& parent, Communicator** made);
/// Replaces a label of next_label() by one on which the ranks agree, if it is too long. Communicates in that case.
int shorten_label(Communicator& parent, std::string* label);
int split(Communicator& parent, int color, int key, MPI_Comm* made);
/// Splits by a type of MPI_Comm_split_type, which the caller has checked. MPI_COMM_TYPE_HW_UNGUIDED gives the kind of
/// hardware that it has chosen.
int split_by_type(Communicator& parent, int type, int key, const InfoPairs& hints, std::string* resource,
                  MPI_Comm* made);
/// Implements MPI_Comm_create. Groups that ranks give have no rank in common, or are equal.
int create_together(Communicator& parent, const Ranks& group, MPI_Comm* made);
int create_from_group(Communicator& parent, const RanksPointer& group, int tag, MPI_Comm* made);

/// Implements MPI_Comm_create_from_group. Calls with equal groups and tags must be made in one order on all ranks.
int create_from_ranks(const RanksPointer& group, const char* tag, MPI_Errhandler handler, MPI_Comm* made);

/// The rest is for the functions that make communicators.
/// Checks a tag that is a string, and returns what stands for it and a group in messages.
int hash_of_tag(const char* tag, const Ranks& group, std::uint64_t* hash);
/// Makes a communicator of some ranks, of which this is one. The leader tells the others its label by a message in the
/// parent.
int agree(Communicator& parent, const RanksPointer& group, std::uint64_t tag, Communicator** made);
/// Returns a number that this process has not given before.
std::uint64_t take_number();
/// Returns the label that a leader's world rank and its number make.
std::string derived_label(int leader, std::uint64_t number);
/// Registers a new communicator under a handle, with the error handler of another. If `code`, of its creation, is an
/// error, it only returns that.
int publish(int code, Communicator* made, const ErrorHandlerUse& handler, MPI_Comm* handle);

/// Gives every rank what each of them has to say, in the order of the engine's group.
template <class T>
int exchange(Communicator& parent, const T& mine, std::vector<T>* values) {
  values->resize(static_cast<std::size_t>(parent.members()));
  const canele_parts_t parts{sizeof mine, nullptr, nullptr};
  Transfer transfer;
  const int code =
      from_engine(canele_iallgather(parent.group(), &mine, values->data(), &parts, nullptr, &transfer.engine));
  return code == MPI_SUCCESS ? transfer.wait(nullptr) : code;
}

}  // namespace canele::mpi
