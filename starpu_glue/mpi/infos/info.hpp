// SPDX-License-Identifier: BSD-3-Clause
//
// Infos: lists of pairs of a key and a value, by which programs give hints.
//
// Used by info_calls.cpp, communicators and windows. Any thread: one lock guards all infos, because they are used
// rarely. Functions return MPI codes.
#pragma once

#include <mpi.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace canele::mpi {

/// Pairs of key and value, in the order in which the keys were set first.
using InfoPairs = std::vector<std::pair<std::string, std::string>>;

int new_info(InfoPairs pairs, MPI_Info* handle);
/// Makes the info of a communicator, window or session: its hints, and the kinds of memory that all of them take.
int new_object_info(InfoPairs hints, MPI_Info* handle);
int free_info(MPI_Info* handle);
/// Copies the pairs of a live handle, or those of MPI_INFO_ENV, which cannot be changed.
int info_pairs(MPI_Info handle, InfoPairs* pairs);
/// Copies the pairs of a hint. MPI_INFO_NULL has none.
int hint_pairs(MPI_Info handle, InfoPairs* pairs);
/// Checks hints of which none is known.
int check_hints(MPI_Info handle);
int set_info(MPI_Info handle, const char* key, const char* value);
int delete_info(MPI_Info handle, const char* key);

/// Checks the length of a key.
int check_info_key(const char* key);
/// Returns the value of a key, else nullptr.
const std::string* find_value(const InfoPairs& pairs, std::string_view key);
/// Sets the value of a key.
void set_value(InfoPairs& pairs, std::string_view key, std::string_view value);

}  // namespace canele::mpi
