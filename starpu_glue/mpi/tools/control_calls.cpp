// SPDX-License-Identifier: BSD-3-Clause
//
// Control variables: the settings of the engine, as texts. Any thread.
//
// A tool may write one before MPI_Init, which then takes it, or ends with what is wrong with it. Ranks may differ only
// where the settings allow it, so a tool sets all ranks alike.
#include <canele/settings.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "calls/tools.hpp"
#include "starpu_glue/mpi/core/state.hpp"
#include "starpu_glue/mpi/tools/handles.hpp"
#include "starpu_glue/mpi/tools/tool_state.hpp"
#include "starpu_glue/mpi/tools/variables.hpp"

namespace canele::mpi {
namespace {

constexpr int kRoomForValue = 1024;  ///< characters, with the final NUL

bool is_setting(int index) { return index >= 0 && index < tools::setting_count(); }

/// Copies a handle. Returns false if it is none.
bool find_control(MPI_T_cvar_handle handle, tools::ControlHandle* copy) {
  const std::lock_guard guard(tools::lock);
  const tools::ControlHandle* const found = tools::control_handles().find(handle);
  if (found != nullptr) *copy = *found;
  return found != nullptr;
}

}  // namespace

namespace calls {

int t_cvar_get_num(int* num_cvar) {
  if (num_cvar == nullptr) return MPI_T_ERR_INVALID;
  *num_cvar = tools::setting_count();
  return MPI_SUCCESS;
}

int t_cvar_get_info(int cvar_index, char* name, int* name_len, int* verbosity, MPI_Datatype* datatype,
                    MPI_T_enum* enumtype, char* desc, int* desc_len, int* bind, int* scope) {
  if (!is_setting(cvar_index)) return MPI_T_ERR_INVALID_INDEX;
  tools::give_text(tools::setting_name(cvar_index), name, name_len);
  tools::give_text(canele_setting_help(cvar_index), desc, desc_len);
  const bool is_for_experts = tools::is_for_experts(cvar_index);
  tools::give(verbosity, is_for_experts ? MPI_T_VERBOSITY_TUNER_DETAIL : MPI_T_VERBOSITY_USER_BASIC);
  tools::give(datatype, MPI_CHAR);
  tools::give(enumtype, MPI_T_ENUM_NULL);
  tools::give(bind, MPI_T_BIND_NO_OBJECT);
  tools::give(scope, MPI_T_SCOPE_ALL_EQ);
  return MPI_SUCCESS;
}

int t_cvar_get_index(const char* name, int* cvar_index) {
  if (name == nullptr || cvar_index == nullptr) return MPI_T_ERR_INVALID;
  for (int index = 0; index < tools::setting_count(); ++index) {
    if (tools::setting_name(index) != name) continue;
    *cvar_index = index;
    return MPI_SUCCESS;
  }
  return MPI_T_ERR_INVALID_NAME;
}

int t_cvar_handle_alloc(int cvar_index, void*, MPI_T_cvar_handle* handle, int* count) {
  if (!is_setting(cvar_index)) return MPI_T_ERR_INVALID_INDEX;
  if (handle == nullptr || count == nullptr) return MPI_T_ERR_INVALID;
  *count = std::max(kRoomForValue, static_cast<int>(tools::setting_value(cvar_index).size()) + 1);
  const std::lock_guard guard(tools::lock);
  *handle = tools::control_handles().add({cvar_index, *count});
  return MPI_SUCCESS;
}

int t_cvar_handle_free(MPI_T_cvar_handle* handle) {
  if (handle == nullptr) return MPI_T_ERR_INVALID;
  const std::lock_guard guard(tools::lock);
  if (!tools::control_handles().remove(*handle)) return MPI_T_ERR_INVALID_HANDLE;
  *handle = MPI_T_CVAR_HANDLE_NULL;
  return MPI_SUCCESS;
}

int t_cvar_read(MPI_T_cvar_handle handle, void* buf) {
  tools::ControlHandle found{};
  if (!find_control(handle, &found)) return MPI_T_ERR_INVALID_HANDLE;
  if (buf == nullptr) return MPI_T_ERR_INVALID;
  int room = found.count;
  tools::give_text(tools::setting_value(found.index), static_cast<char*>(buf), &room);
  return MPI_SUCCESS;
}

int t_cvar_write(MPI_T_cvar_handle handle, const void* buf) {
  tools::ControlHandle found{};
  if (!find_control(handle, &found)) return MPI_T_ERR_INVALID_HANDLE;
  if (buf == nullptr) return MPI_T_ERR_INVALID;
  if (phase() != Phase::before) return MPI_T_ERR_CVAR_SET_NOT_NOW;
  const auto* const text = static_cast<const char*>(buf);
  if (std::memchr(text, '\0', static_cast<std::size_t>(found.count)) == nullptr) return MPI_T_ERR_INVALID;
  return tools::write_setting(found.index, text) ? MPI_SUCCESS : MPI_T_ERR_CVAR_SET_NOT_NOW;
}

}  // namespace calls
}  // namespace canele::mpi
