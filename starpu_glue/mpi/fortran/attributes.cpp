// SPDX-License-Identifier: BSD-3-Clause
//
// Cells with the values of attributes, and MPI's own functions for keys, in Fortran.
#include "starpu_glue/mpi/fortran/attributes.hpp"

#include <mutex>
#include <unordered_set>

namespace canele::mpi::fortran {
namespace {

/// All cells, to tell their addresses from the values of C. Never ends: objects may be freed while the process ends.
struct Cells {
  std::mutex lock;
  std::unordered_set<MPI_Aint*> all;
};
Cells& cells() {
  static Cells& one = *new Cells;
  return one;
}

}  // namespace

void* new_cell(MPI_Aint value) {
  auto cell = std::make_unique<MPI_Aint>(value);
  const std::lock_guard guard(cells().lock);
  cells().all.insert(cell.get());
  return cell.release();
}

bool is_cell(void* attribute) {
  const std::lock_guard guard(cells().lock);
  return cells().all.contains(static_cast<MPI_Aint*>(attribute));
}

void drop_cell(void* attribute) {
  const std::lock_guard guard(cells().lock);
  if (cells().all.erase(static_cast<MPI_Aint*>(attribute)) != 0) delete static_cast<MPI_Aint*>(attribute);
}

MPI_Aint read_attribute(void* attribute) {
  return is_cell(attribute) ? *static_cast<MPI_Aint*>(attribute) : reinterpret_cast<MPI_Aint>(attribute);
}

MPI_Aint read_attribute(int keyval, void* attribute) {
  if (keyval == MPI_WIN_SIZE) return *static_cast<const MPI_Aint*>(attribute);
  const bool is_of_comm = keyval >= MPI_TAG_UB && keyval <= MPI_TAG_UB + 6;
  const bool is_of_window = keyval > MPI_WIN_BASE && keyval <= MPI_WIN_MODEL;
  return is_of_comm || is_of_window ? *static_cast<const int*>(attribute) : read_attribute(attribute);
}

namespace {

template <class Integer>
void copy_value(Integer* value, Integer* copied, MPI_Fint* flag, MPI_Fint* ierror) {
  *copied = *value;
  *flag = 1;
  *ierror = MPI_SUCCESS;
}

}  // namespace
}  // namespace canele::mpi::fortran

using canele::mpi::fortran::copy_value;

/// Gives a function the names that compilers make. In capitals they are macros of mpi.h, and do not exist here.
#define CANELE_FUNCTION_OF_KEYS(lower, stub)       \
  CANELE_FORTRAN_NAME(mpi_##lower, mpi_##stub##_); \
  CANELE_FORTRAN_NAME(mpi_##lower##__, mpi_##stub##_)
/// Those of other kinds of objects do the same.
#define CANELE_SAME_FUNCTION(lower, stub) \
  CANELE_FUNCTION_OF_KEYS(lower, stub);   \
  CANELE_FORTRAN_NAME(mpi_##lower##_, mpi_##stub##_)

CANELE_FORTRAN void mpi_null_copy_fn_(MPI_Fint*, MPI_Fint*, void*, void*, void*, MPI_Fint* flag, MPI_Fint* ierror) {
  *flag = 0;
  *ierror = MPI_SUCCESS;
}
CANELE_FUNCTION_OF_KEYS(null_copy_fn, null_copy_fn);
CANELE_SAME_FUNCTION(comm_null_copy_fn, null_copy_fn);
CANELE_SAME_FUNCTION(type_null_copy_fn, null_copy_fn);
CANELE_SAME_FUNCTION(win_null_copy_fn, null_copy_fn);

CANELE_FORTRAN void mpi_null_delete_fn_(MPI_Fint*, MPI_Fint*, void*, void*, MPI_Fint* ierror) { *ierror = MPI_SUCCESS; }
CANELE_FUNCTION_OF_KEYS(null_delete_fn, null_delete_fn);
CANELE_SAME_FUNCTION(comm_null_delete_fn, null_delete_fn);
CANELE_SAME_FUNCTION(type_null_delete_fn, null_delete_fn);
CANELE_SAME_FUNCTION(win_null_delete_fn, null_delete_fn);

CANELE_FORTRAN void mpi_dup_fn_(MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint* value, MPI_Fint* copied, MPI_Fint* flag,
                                MPI_Fint* ierror) {
  copy_value(value, copied, flag, ierror);
}
CANELE_FUNCTION_OF_KEYS(dup_fn, dup_fn);

CANELE_FORTRAN void mpi_comm_dup_fn_(MPI_Fint*, MPI_Fint*, MPI_Aint*, MPI_Aint* value, MPI_Aint* copied, MPI_Fint* flag,
                                     MPI_Fint* ierror) {
  copy_value(value, copied, flag, ierror);
}
CANELE_FUNCTION_OF_KEYS(comm_dup_fn, comm_dup_fn);
CANELE_SAME_FUNCTION(type_dup_fn, comm_dup_fn);
CANELE_SAME_FUNCTION(win_dup_fn, comm_dup_fn);
