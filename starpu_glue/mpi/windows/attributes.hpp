// SPDX-License-Identifier: BSD-3-Clause
//
// Attributes of the program, and its error handlers, for windows.
//
// Called by api_attribute.cpp, and at the end of a window. Any thread: one lock guards keys and handlers, and one each
// window's attributes. The program's functions are called without a lock. Functions return MPI codes.
#pragma once

#include <mpi.h>

#include "starpu_glue/mpi/windows/window.hpp"

namespace canele::mpi {

int new_keyval(MPI_Win_delete_attr_function* on_delete, void* extra, int* keyval);
/// Frees a key. Attributes that have it keep it until they are deleted.
int free_keyval(int* keyval);

int set_attribute(Window& window, int keyval, void* value);
/// Sets *flag if the window has the attribute, and *value then.
int find_attribute(Window& window, int keyval, void** value, int* flag);
int delete_attribute(Window& window, int keyval);
/// Deletes all attributes, the last one first.
int delete_attributes(Window& window);

}  // namespace canele::mpi
