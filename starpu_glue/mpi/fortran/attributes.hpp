// SPDX-License-Identifier: BSD-3-Clause
//
// Attributes in Fortran, for the stubs that generate.py makes. Any thread.
//
// The value of an attribute is an integer in Fortran and a pointer in C. C reads what Fortran has set as a pointer to
// the integer. So a stub keeps the integer in a cell, and the attribute is the address of the cell. Fortran reads what
// C has set as the pointer's own value. The predefined attributes are pointers in C, except MPI_WIN_BASE.
//
// The functions of a key are called through functions in C. These drop the cell of a value that is deleted, and make
// another one for a value that is copied. A key that C has made does not: the cells of its attributes remain.
#pragma once

#include <memory>

#include "starpu_glue/mpi/core/attributes.hpp"
#include "starpu_glue/mpi/fortran/convert.hpp"

namespace canele::mpi::fortran {

/// Makes a cell. Throws std::bad_alloc.
void* new_cell(MPI_Aint value);
bool is_cell(void* attribute);
/// Does nothing if it is no cell.
void drop_cell(void* attribute);
/// Reads an attribute that the program has set.
MPI_Aint read_attribute(void* attribute);
/// Reads any attribute: what a pointer of C points to, if it is predefined.
MPI_Aint read_attribute(int keyval, void* attribute);

/// A key's functions in Fortran, and their state. The functions of MPI-1 have values of the size of INTEGER.
template <class Integer>
struct Key {
  using Copy = void(MPI_Fint* object, MPI_Fint* keyval, Integer* extra_state, Integer* value, Integer* copied,
                    MPI_Fint* flag, MPI_Fint* ierror);
  using Delete = void(MPI_Fint* object, MPI_Fint* keyval, Integer* value, Integer* extra_state, MPI_Fint* ierror);

  Copy* copy;
  Delete* on_delete;
  Integer extra_state;
};

template <class Handle, class Integer>
int copy_attribute(Handle handle, int keyval, void* extra_state, void* value, void* copied, int* flag) try {
  auto& key = *static_cast<Key<Integer>*>(extra_state);
  MPI_Fint object = to_integer(handle), code = MPI_SUCCESS, is_copied = 0;
  auto from = static_cast<Integer>(read_attribute(value));
  Integer to = 0;
  key.copy(&object, &keyval, &key.extra_state, &from, &to, &is_copied, &code);
  if (code != MPI_SUCCESS) return code;
  *flag = is_copied != 0 ? 1 : 0;
  if (*flag == 0) return MPI_SUCCESS;
  const bool is_of_c = !is_cell(value) && to == from;
  void* const made = is_of_c ? value : new_cell(to);
  std::memcpy(copied, &made, sizeof made);  // the caller gives the address of a pointer
  return MPI_SUCCESS;
} catch (const std::bad_alloc&) {
  return MPI_ERR_NO_MEM;
}

template <class Handle, class Integer>
int delete_attribute(Handle handle, int keyval, void* value, void* extra_state) {
  auto& key = *static_cast<Key<Integer>*>(extra_state);
  MPI_Fint object = to_integer(handle), code = MPI_SUCCESS;
  auto integer = static_cast<Integer>(read_attribute(value));
  key.on_delete(&object, &keyval, &integer, &key.extra_state, &code);
  if (code == MPI_SUCCESS) drop_cell(value);
  return code;
}

/// Makes a key by a function of C.
template <class Handle, class Integer, class Create>
int create_key(Create create, typename Key<Integer>::Copy* copy, typename Key<Integer>::Delete* on_delete,
               MPI_Fint* keyval, Integer extra_state) try {
  auto key = std::make_unique<Key<Integer>>(Key<Integer>{copy, on_delete, extra_state});
  const int code = create(copy_attribute<Handle, Integer>, delete_attribute<Handle, Integer>, keyval, key.get());
  if (code != MPI_SUCCESS) return code;
  release_with_key(*keyval, [](void* extra) { delete static_cast<Key<Integer>*>(extra); });
  static_cast<void>(key.release());
  return MPI_SUCCESS;
} catch (const std::bad_alloc&) {
  return MPI_ERR_NO_MEM;
}

/// Sets an attribute by a function of C.
template <class Handle, class Set>
int set_attribute(Set set, MPI_Fint object, MPI_Fint keyval, MPI_Aint value) try {
  void* const cell = new_cell(value);
  const int code = set(to_handle<Handle>(object), keyval, cell);
  if (code != MPI_SUCCESS) drop_cell(cell);
  return code;
} catch (const std::bad_alloc&) {
  return MPI_ERR_NO_MEM;
}

/// Reads an attribute by a function of C.
template <class Handle, class Integer, class Get>
int get_attribute(Get get, MPI_Fint object, MPI_Fint keyval, Integer* value, MPI_Fint* flag) {
  void* attribute = nullptr;
  const int code = get(to_handle<Handle>(object), keyval, &attribute, flag);
  if (code == MPI_SUCCESS && *flag != 0) *value = static_cast<Integer>(read_attribute(keyval, attribute));
  return code;
}

}  // namespace canele::mpi::fortran
