// SPDX-License-Identifier: BSD-3-Clause
//
// Error classes and codes that the program adds, with its texts for them.
//
// Any thread, at any time: one lock guards all of them. Their numbers follow MPI_ERR_LASTCODE. A class is a code, too.
// Functions return MPI codes.
#pragma once

#include <mpi.h>

namespace canele::mpi {

int add_error_class(int* made);
/// Adds a code of a class, predefined or added.
int add_error_code(int error_class, int* made);
/// Sets the text of an added code.
int set_error_text(int code, const char* text);
/// Removes a class that no other code has, or a code that is no class.
int remove_error_class(int error_class);
int remove_error_code(int code);
int remove_error_text(int code);

/// Returns the class of any code; MPI_ERR_UNKNOWN if there is no such code.
int class_of_code(int code);
/// Writes the text of an added code, which may be empty. Returns false if there is no such code.
bool describe_added_code(int code, char* text, int size);
/// Returns where the highest code in use stands: the value of MPI_LASTUSEDCODE.
const int* last_used_code();

}  // namespace canele::mpi
