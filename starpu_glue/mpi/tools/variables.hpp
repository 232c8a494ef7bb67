// SPDX-License-Identifier: BSD-3-Clause
//
// The variables of the tool interface: settings of the engine as control variables, its counters as performance
// variables. Both come from the public API, with their names and texts.
//
// Any thread. Settings that a tool writes before MPI_Init are kept here, under tools::lock, and MPI_Init takes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace canele::mpi::tools {

int setting_count();
/// "CANELE_STRATEGY".
std::string setting_name(int index);
bool is_for_experts(int index);
/// Returns the value in force, or the one that MPI_Init would take. Throws std::bad_alloc. Takes the lock.
std::string setting_value(int index);
/// Keeps a value for MPI_Init. Returns false if MPI_Init has begun. Takes the lock.
bool write_setting(int index, const char* value);

/// For MPI_Init: the settings that tools have written, "CANELE_STRATEGY=fifo", and the value of one of them. Such a
/// text lives as long as the process.
std::vector<std::string> written_settings();
const char* written_setting(const char* name);

/// Counters, without those that are old names of others.
int counter_count();
/// A class of performance variables, by the counter's name.
int counter_class(int index);
/// Whether the variable tells a state, which always runs and cannot be set.
bool is_continuous(int index);
/// Returns the engine's value; nothing before MPI_Init and after MPI_Finalize. Takes no lock of tools.
std::optional<std::uint64_t> read_counter(int index);

}  // namespace canele::mpi::tools
