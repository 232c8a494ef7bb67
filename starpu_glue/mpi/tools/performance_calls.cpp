// SPDX-License-Identifier: BSD-3-Clause
//
// Performance variables: the counters of the engine, in sessions. Any thread.
//
// A counter counts from the start of its handle on, and can be stopped, set and reset without effect on others. The
// variables that tell a state now, or the largest so far, are continuous and cannot be set.
#include <canele/canele.h>

#include <cstring>
#include <string_view>
#include <vector>

#include "calls/tools.hpp"
#include "starpu_glue/mpi/tools/handles.hpp"
#include "starpu_glue/mpi/tools/tool_state.hpp"
#include "starpu_glue/mpi/tools/variables.hpp"

namespace canele::mpi {
namespace {

using tools::PerformanceHandle;

bool is_counter(int index) { return index >= 0 && index < tools::counter_count(); }

/// Adds what the engine has counted since the handle was last looked at.
void advance(PerformanceHandle& one, std::optional<std::uint64_t> now) {
  if (!now) return;
  if (tools::is_continuous(one.index)) {
    one.total = *now;
  } else if (one.runs) {
    one.total += *now - one.begun;
  }
  one.begun = *now;
}

/// Performs change(handle) with handles that have the engine's values: that one, or all of the session that may be
/// started and set. Returns a code of the tool interface.
template <class Change>
int with_handle(MPI_T_pvar_session session, MPI_T_pvar_handle handle, bool may_be_all, Change change) {
  // The lock is not held while the engine is asked. No handle changes its variable.
  std::vector<std::optional<std::uint64_t>> now;
  for (int index = 0; index < tools::counter_count(); ++index) now.push_back(tools::read_counter(index));
  const std::lock_guard guard(tools::lock);
  const tools::Session* const found = tools::sessions().find(session);
  if (found == nullptr) return MPI_T_ERR_INVALID_SESSION;
  if (handle == MPI_T_PVAR_ALL_HANDLES && may_be_all) {
    for (const auto& one : found->handles) {
      if (tools::is_continuous(one->index)) continue;
      advance(*one, now[static_cast<std::size_t>(one->index)]);
      change(*one);
    }
    return MPI_SUCCESS;
  }
  PerformanceHandle* const one = found->handles.find(handle);
  if (one == nullptr) return MPI_T_ERR_INVALID_HANDLE;
  advance(*one, now[static_cast<std::size_t>(one->index)]);
  return change(*one);
}

/// Performs change(handle) if the handle may be started and set; else returns `error`.
template <class Change>
auto unless_continuous(int error, Change change) {
  return [error, change](PerformanceHandle& one) {
    if (tools::is_continuous(one.index)) return error;
    change(one);
    return MPI_SUCCESS;
  };
}

}  // namespace

namespace calls {

int t_pvar_get_num(int* num_pvar) {
  if (num_pvar == nullptr) return MPI_T_ERR_INVALID;
  *num_pvar = tools::counter_count();
  return MPI_SUCCESS;
}

int t_pvar_get_info(int pvar_index, char* name, int* name_len, int* verbosity, int* var_class, MPI_Datatype* datatype,
                    MPI_T_enum* enumtype, char* desc, int* desc_len, int* bind, int* readonly, int* continuous,
                    int* atomic) {
  if (!is_counter(pvar_index)) return MPI_T_ERR_INVALID_INDEX;
  const bool is_continuous = tools::is_continuous(pvar_index);
  tools::give_text(canele_counter_name(pvar_index), name, name_len);
  tools::give_text(canele_counter_help(pvar_index), desc, desc_len);
  tools::give(verbosity, MPI_T_VERBOSITY_TUNER_BASIC);
  tools::give(var_class, tools::counter_class(pvar_index));
  tools::give(datatype, MPI_UNSIGNED_LONG_LONG);
  tools::give(enumtype, MPI_T_ENUM_NULL);
  tools::give(bind, MPI_T_BIND_NO_OBJECT);
  tools::give(readonly, is_continuous ? 1 : 0);
  tools::give(continuous, is_continuous ? 1 : 0);
  tools::give(atomic, is_continuous ? 0 : 1);
  return MPI_SUCCESS;
}

int t_pvar_get_index(const char* name, int var_class, int* pvar_index) {
  if (name == nullptr || pvar_index == nullptr) return MPI_T_ERR_INVALID;
  for (int index = 0; index < tools::counter_count(); ++index) {
    if (std::string_view(canele_counter_name(index)) != name || tools::counter_class(index) != var_class) continue;
    *pvar_index = index;
    return MPI_SUCCESS;
  }
  return MPI_T_ERR_INVALID_NAME;
}

int t_pvar_session_create(MPI_T_pvar_session* session) {
  if (session == nullptr) return MPI_T_ERR_INVALID;
  const std::lock_guard guard(tools::lock);
  *session = tools::sessions().add({});
  return MPI_SUCCESS;
}

int t_pvar_session_free(MPI_T_pvar_session* session) {
  if (session == nullptr) return MPI_T_ERR_INVALID;
  const std::lock_guard guard(tools::lock);
  if (!tools::sessions().remove(*session)) return MPI_T_ERR_INVALID_SESSION;
  *session = MPI_T_PVAR_SESSION_NULL;
  return MPI_SUCCESS;
}

int t_pvar_handle_alloc(MPI_T_pvar_session session, int pvar_index, void*, MPI_T_pvar_handle* handle, int* count) {
  if (!is_counter(pvar_index)) return MPI_T_ERR_INVALID_INDEX;
  if (handle == nullptr || count == nullptr) return MPI_T_ERR_INVALID;
  const std::lock_guard guard(tools::lock);
  tools::Session* const found = tools::sessions().find(session);
  if (found == nullptr) return MPI_T_ERR_INVALID_SESSION;
  *handle = found->handles.add({pvar_index, false, 0, 0});
  *count = 1;
  return MPI_SUCCESS;
}

int t_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle* handle) {
  if (handle == nullptr) return MPI_T_ERR_INVALID;
  const std::lock_guard guard(tools::lock);
  tools::Session* const found = tools::sessions().find(session);
  if (found == nullptr) return MPI_T_ERR_INVALID_SESSION;
  if (!found->handles.remove(*handle)) return MPI_T_ERR_INVALID_HANDLE;
  *handle = MPI_T_PVAR_HANDLE_NULL;
  return MPI_SUCCESS;
}

int t_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  return with_handle(session, handle, true,
                     unless_continuous(MPI_T_ERR_PVAR_NO_STARTSTOP, [](PerformanceHandle& one) { one.runs = true; }));
}

int t_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  return with_handle(session, handle, true,
                     unless_continuous(MPI_T_ERR_PVAR_NO_STARTSTOP, [](PerformanceHandle& one) { one.runs = false; }));
}

int t_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buf) {
  if (buf == nullptr) return MPI_T_ERR_INVALID;
  return with_handle(session, handle, false, [buf](const PerformanceHandle& one) {
    std::memcpy(buf, &one.total, sizeof one.total);
    return MPI_SUCCESS;
  });
}

int t_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void* buf) {
  if (buf == nullptr) return MPI_T_ERR_INVALID;
  return with_handle(session, handle, false, unless_continuous(MPI_T_ERR_PVAR_NO_WRITE, [buf](PerformanceHandle& one) {
                       std::memcpy(&one.total, buf, sizeof one.total);
                     }));
}

int t_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  return with_handle(session, handle, true,
                     unless_continuous(MPI_T_ERR_PVAR_NO_WRITE, [](PerformanceHandle& one) { one.total = 0; }));
}

int t_pvar_readreset(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buf) {
  if (buf == nullptr) return MPI_T_ERR_INVALID;
  return with_handle(session, handle, false, unless_continuous(MPI_T_ERR_PVAR_NO_WRITE, [buf](PerformanceHandle& one) {
                       std::memcpy(buf, &one.total, sizeof one.total);
                       one.total = 0;
                     }));
}

}  // namespace calls
}  // namespace canele::mpi
