// SPDX-License-Identifier: BSD-3-Clause
//
// Conversion of Fortran's arguments to those of C, for the stubs that generate.py makes. Any thread.
//
// A handle is the same number in both languages. A status has the same layout. Texts are padded with blanks, and their
// lengths come behind all other arguments. The error code is optional in mpi_f08. Constants that stand for an address
// are variables in common blocks, which mpif.h declares: their addresses tell them from data. A program has its own
// copy of each block, which the loader takes for all, so the blocks are exported.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "starpu_glue/mpi/core/handles.hpp"

#define CANELE_FORTRAN extern "C" __attribute__((visibility("default")))
/// Gives a stub another name, as other compilers make it.
#define CANELE_FORTRAN_NAME(name, stub) \
  CANELE_FORTRAN __attribute__((weak, alias(#stub), copy(stub))) decltype(stub) name

/// Gives the stub mpi_<lower>_ all names that compilers make of MPI_X and PMPI_X.
#define CANELE_FORTRAN_NAMES(lower, upper)               \
  CANELE_FORTRAN_NAME(mpi_##lower, mpi_##lower##_);      \
  CANELE_FORTRAN_NAME(mpi_##lower##__, mpi_##lower##_);  \
  CANELE_FORTRAN_NAME(MPI_##upper, mpi_##lower##_);      \
  CANELE_FORTRAN_NAME(pmpi_##lower, mpi_##lower##_);     \
  CANELE_FORTRAN_NAME(pmpi_##lower##_, mpi_##lower##_);  \
  CANELE_FORTRAN_NAME(pmpi_##lower##__, mpi_##lower##_); \
  CANELE_FORTRAN_NAME(PMPI_##upper, mpi_##lower##_)

/// Gives the stub mpi_<lower>_ the names of the module mpi_f08, too.
#define CANELE_F08_NAMES(lower)                            \
  CANELE_FORTRAN_NAME(mpi_##lower##_f08_, mpi_##lower##_); \
  CANELE_FORTRAN_NAME(pmpi_##lower##_f08_, mpi_##lower##_)

/// Gives a stub that only mpi_f08 has its name of PMPI.
#define CANELE_F08_NAME(lower) CANELE_FORTRAN_NAME(pmpi_##lower##_, mpi_##lower##_)

/// The common blocks of mpif.h.
CANELE_FORTRAN MPI_Fint canele_mpi_bottom_, canele_mpi_in_place_, canele_mpi_unweighted_, canele_mpi_weights_empty_;
CANELE_FORTRAN MPI_Fint canele_mpi_buffer_automatic_;
CANELE_FORTRAN MPI_Fint canele_mpi_status_ignore_[MPI_F_STATUS_SIZE];
CANELE_FORTRAN MPI_Fint canele_mpi_statuses_ignore_[MPI_F_STATUS_SIZE];

namespace canele::mpi::fortran {

using mpi::to_handle;
using mpi::to_integer;

/// Gives the program the code of a call, if it wants it.
inline void answer(MPI_Fint* ierror, int code) {
  if (ierror != nullptr) *ierror = code;
}

inline void* to_buffer(void* data) {
  if (data == &canele_mpi_bottom_) return MPI_BOTTOM;
  if (data == &canele_mpi_buffer_automatic_) return MPI_BUFFER_AUTOMATIC;
  return data == &canele_mpi_in_place_ ? MPI_IN_PLACE : data;
}

inline MPI_Fint* to_weights(MPI_Fint* weights) {
  if (weights == &canele_mpi_unweighted_) return MPI_UNWEIGHTED;
  return weights == &canele_mpi_weights_empty_ ? MPI_WEIGHTS_EMPTY : weights;
}

/// A status in Fortran is an array of as many integers as a status in C has.
static_assert(sizeof(MPI_Status) == MPI_F_STATUS_SIZE * sizeof(MPI_Fint));
static_assert(alignof(MPI_Status) == alignof(MPI_Fint));
inline MPI_Status* to_status(MPI_Fint* status) {
  return status == canele_mpi_status_ignore_ ? MPI_STATUS_IGNORE : reinterpret_cast<MPI_Status*>(status);
}
inline MPI_Status* to_statuses(MPI_Fint* statuses) {
  return statuses == canele_mpi_statuses_ignore_ ? MPI_STATUSES_IGNORE : reinterpret_cast<MPI_Status*>(statuses);
}

/// Returns the number of ranks that collectives on a communicator have data for: of an intercommunicator, those of the
/// remote group. 0 if it is none.
inline MPI_Fint size_of(MPI_Fint number) {
  const auto comm = to_handle<MPI_Comm>(number);
  int size = 0, is_inter = 0;
  if (MPI_Comm_test_inter(comm, &is_inter) != MPI_SUCCESS) return 0;
  is_inter != 0 ? MPI_Comm_remote_size(comm, &size) : MPI_Comm_size(comm, &size);
  return size;
}

/// The lengths of arrays that the topology of a communicator says; 0 if it has none.
inline MPI_Fint dimensions_of(MPI_Fint number) {
  const auto comm = to_handle<MPI_Comm>(number);
  int kind = MPI_UNDEFINED, dimensions = 0;
  if (MPI_Topo_test(comm, &kind) == MPI_SUCCESS && kind == MPI_CART) MPI_Cartdim_get(comm, &dimensions);
  return dimensions;
}
inline MPI_Fint neighbors_of(MPI_Fint number, bool sources) {
  const auto comm = to_handle<MPI_Comm>(number);
  int kind = MPI_UNDEFINED, rank = 0, in = 0, out = 0, weighted = 0;
  if (MPI_Topo_test(comm, &kind) != MPI_SUCCESS) return 0;
  if (kind == MPI_CART) return 2 * dimensions_of(number);
  if (kind == MPI_GRAPH && MPI_Comm_rank(comm, &rank) == MPI_SUCCESS) MPI_Graph_neighbors_count(comm, rank, &in);
  if (kind == MPI_GRAPH) return in;
  if (kind == MPI_DIST_GRAPH) MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
  return sources ? in : out;
}
inline MPI_Fint sources_of(MPI_Fint comm) { return neighbors_of(comm, true); }
inline MPI_Fint destinations_of(MPI_Fint comm) { return neighbors_of(comm, false); }

/// An array of handles. The call may change them.
template <class Handle>
class Handles {
 public:
  Handles(const MPI_Fint* numbers, MPI_Count length) {
    for (MPI_Count i = 0; i < length; ++i) handles_.push_back(to_handle<Handle>(numbers[i]));
  }
  Handle* get() { return handles_.data(); }
  void write_back(MPI_Fint* numbers) const {
    for (std::size_t i = 0; i < handles_.size(); ++i) numbers[i] = to_integer(handles_[i]);
  }

 private:
  std::vector<Handle> handles_;
};

/// An array of LOGICAL. Compilers have different values for .TRUE., none of them 0.
class Flags {
 public:
  Flags(const MPI_Fint* flags, MPI_Fint length) {
    for (MPI_Fint i = 0; i < length; ++i) flags_.push_back(flags[i] != 0 ? 1 : 0);
  }
  const int* get() const { return flags_.data(); }

 private:
  std::vector<int> flags_;
};

/// A text that the program gives, without the blanks at its ends.
class Text {
 public:
  Text(const char* text, std::size_t length) {
    while (length > 0 && text[length - 1] == ' ') --length;
    while (length > 0 && *text == ' ') ++text, --length;
    text_.assign(text, length);
  }
  const char* get() const { return text_.c_str(); }

 private:
  std::string text_;
};

/// Room for a text that the program wants.
class TextRoom {
 public:
  explicit TextRoom(std::size_t length) : length_(length), room_(length < kLongest ? kLongest + 1 : length + 1, '\0') {}
  char* get() { return room_.data(); }
  /// Writes what fits, and blanks behind it.
  void write(char* text) const {
    const std::size_t size = std::strlen(room_.data());
    const std::size_t copied = size < length_ ? size : length_;
    std::memcpy(text, room_.data(), copied);
    std::memset(text + copied, ' ', length_ - copied);
  }

 private:
  static constexpr std::size_t kLongest = MPI_MAX_LIBRARY_VERSION_STRING;

  std::size_t length_;
  std::string room_;
};

/// Makes indexes count from 1. MPI_UNDEFINED stays.
inline void count_from_one(MPI_Fint* indexes, MPI_Fint count) {
  for (MPI_Fint i = 0; i < count; ++i) {
    if (indexes[i] >= 0) ++indexes[i];
  }
}

}  // namespace canele::mpi::fortran
