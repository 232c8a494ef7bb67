// SPDX-License-Identifier: BSD-3-Clause
//
// Start and end of the tool interface; what has no members here: enumerations, events and their sources. Any thread.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "calls/tools.hpp"
#include "starpu_glue/mpi/tools/handles.hpp"
#include "starpu_glue/mpi/tools/tool_state.hpp"

namespace canele::mpi::tools {
namespace {
constinit std::atomic<int> starts{0};
}

constinit std::mutex lock;

bool is_started() { return starts.load(std::memory_order_relaxed) > 0; }

void give_text(std::string_view text, char* buffer, int* length) {
  if (length == nullptr) return;
  if (buffer != nullptr && *length > 0) {
    const std::size_t copied = std::min(text.size(), static_cast<std::size_t>(*length) - 1);
    std::memcpy(buffer, text.data(), copied);
    buffer[copied] = '\0';
  }
  *length = static_cast<int>(text.size()) + 1;
}

}  // namespace canele::mpi::tools

namespace canele::mpi::calls {

int t_init_thread(int required, int* provided) {
  if (provided == nullptr) return MPI_T_ERR_INVALID;
  const bool is_level = required == MPI_THREAD_SINGLE || required == MPI_THREAD_FUNNELED ||
                        required == MPI_THREAD_SERIALIZED || required == MPI_THREAD_MULTIPLE;
  if (!is_level) return MPI_T_ERR_INVALID;
  tools::starts.fetch_add(1, std::memory_order_relaxed);
  *provided = required;
  return MPI_SUCCESS;
}

/// The last one ends all handles and sessions.
int t_finalize() {
  const std::lock_guard guard(tools::lock);
  if (tools::starts.fetch_sub(1, std::memory_order_relaxed) == 1) tools::drop_all_handles();
  return MPI_SUCCESS;
}

int t_enum_get_info(MPI_T_enum, int*, char*, int*) { return MPI_T_ERR_INVALID_HANDLE; }

int t_enum_get_item(MPI_T_enum, int, int*, char*, int*) { return MPI_T_ERR_INVALID_HANDLE; }

int t_event_get_num(int* num_events) {
  if (num_events == nullptr) return MPI_T_ERR_INVALID;
  *num_events = 0;
  return MPI_SUCCESS;
}

int t_event_get_index(const char* name, int* event_index) {
  return name == nullptr || event_index == nullptr ? MPI_T_ERR_INVALID : MPI_T_ERR_INVALID_NAME;
}

int t_event_get_info(int, char*, int*, int*, MPI_Datatype[], MPI_Aint[], int*, MPI_T_enum*, MPI_Info*, char*, int*,
                     int*) {
  return MPI_T_ERR_INVALID_INDEX;
}

int t_event_handle_alloc(int, void*, MPI_Info, MPI_T_event_registration*) { return MPI_T_ERR_INVALID_INDEX; }

int t_event_handle_free(MPI_T_event_registration, void*, MPI_T_event_free_cb_function*) {
  return MPI_T_ERR_INVALID_HANDLE;
}

int t_event_handle_get_info(MPI_T_event_registration, MPI_Info*) { return MPI_T_ERR_INVALID_HANDLE; }

int t_event_handle_set_info(MPI_T_event_registration, MPI_Info) { return MPI_T_ERR_INVALID_HANDLE; }

int t_event_callback_get_info(MPI_T_event_registration, MPI_T_cb_safety, MPI_Info*) { return MPI_T_ERR_INVALID_HANDLE; }

int t_event_callback_set_info(MPI_T_event_registration, MPI_T_cb_safety, MPI_Info) { return MPI_T_ERR_INVALID_HANDLE; }

int t_event_register_callback(MPI_T_event_registration, MPI_T_cb_safety, MPI_Info, void*, MPI_T_event_cb_function*) {
  return MPI_T_ERR_INVALID_HANDLE;
}

int t_event_set_dropped_handler(MPI_T_event_registration, MPI_T_event_dropped_cb_function*) {
  return MPI_T_ERR_INVALID_HANDLE;
}

int t_event_read(MPI_T_event_instance, int, void*) { return MPI_T_ERR_INVALID_HANDLE; }

int t_event_copy(MPI_T_event_instance, void*) { return MPI_T_ERR_INVALID_HANDLE; }

int t_event_get_timestamp(MPI_T_event_instance, MPI_Count*) { return MPI_T_ERR_INVALID_HANDLE; }

int t_event_get_source(MPI_T_event_instance, int*) { return MPI_T_ERR_INVALID_HANDLE; }

int t_source_get_num(int* num_sources) {
  if (num_sources == nullptr) return MPI_T_ERR_INVALID;
  *num_sources = 0;
  return MPI_SUCCESS;
}

int t_source_get_info(int, char*, int*, char*, int*, MPI_T_source_order*, MPI_Count*, MPI_Count*, MPI_Info*) {
  return MPI_T_ERR_INVALID_INDEX;
}

int t_source_get_timestamp(int, MPI_Count*) { return MPI_T_ERR_INVALID_INDEX; }

}  // namespace canele::mpi::calls
