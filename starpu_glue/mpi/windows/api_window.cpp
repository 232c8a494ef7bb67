// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Win_ functions of windows as objects, also the forms for large counts; MPI_Alloc_mem and MPI_Free_mem. Called
// from any thread.
#include "starpu_glue/mpi/windows/api_window.hpp"

#include <climits>
#include <cstdlib>
#include <cstring>

#include "starpu_glue/mpi/windows/dynamic.hpp"
#include "starpu_glue/mpi/windows/shared.hpp"

namespace canele::mpi {
namespace {

int check_request(const WindowRequest& request) {
  if (request.size < 0)
    return fail(MPI_ERR_SIZE, "the size is %lld; expected: at least 0", static_cast<long long>(request.size));
  if (request.unit <= 0 || request.unit > INT_MAX)
    return fail(MPI_ERR_DISP, "the displacement unit is %lld; expected: 1 to %d", static_cast<long long>(request.unit),
                INT_MAX);
  if (request.flavor == MPI_WIN_FLAVOR_CREATE && request.base == nullptr && request.size > 0)
    return fail(MPI_ERR_BASE, "the base is NULL for %lld bytes", static_cast<long long>(request.size));
  return MPI_SUCCESS;
}

/// Makes a window for the ranks of a communicator, and writes its handle, and its address if `base` is given.
int make_window(Function function, MPI_Comm comm, const WindowRequest& request, void* base, MPI_Win* handle) {
  const Call call(function);
  if (call.rejected()) return call.end(reject_in_child());
  int code = given({{"window", handle}});
  const bool allocates = request.flavor == MPI_WIN_FLAVOR_ALLOCATE || request.flavor == MPI_WIN_FLAVOR_SHARED;
  if (code == MPI_SUCCESS && allocates) code = given({{"base", base}});
  if (code != MPI_SUCCESS) return call.end(code);
  Communicator* parent = nullptr;
  code = get_communicator(comm, &parent);
  if (code == MPI_SUCCESS) code = expect_intracommunicator(*parent);
  if (code == MPI_SUCCESS) code = check_request(request);
  if (code == MPI_SUCCESS) code = may_block();
  Window* made = nullptr;
  if (code == MPI_SUCCESS) code = create_window(*parent, request, &made);
  if (code != MPI_SUCCESS) return call.end(code, parent);
  *handle = made->handle;
  if (base != nullptr) std::memcpy(base, &made->base, sizeof made->base);  // the caller gives the address of a pointer
  return MPI_SUCCESS;
}

/// For both forms: `unit` is the address of an int, or of an MPI_Aint.
template <class Unit>
int query_shared(Function function, MPI_Win window, int rank, MPI_Aint* size, Unit* unit, void* base) {
  return with_window(function, window, [&](const Window& w) {
    int code = given({{"size", size}, {"unit", unit}, {"base", base}});
    void* found = nullptr;
    int found_unit = 0;
    if (code == MPI_SUCCESS) code = find_shared_part(w, rank, size, &found_unit, &found);
    if (code != MPI_SUCCESS) return code;
    *unit = found_unit;
    std::memcpy(base, &found, sizeof found);  // the caller gives the address of a pointer
    return code;
  });
}

}  // namespace
}  // namespace canele::mpi

using namespace canele::mpi;

extern "C" int PMPI_Alloc_mem(MPI_Aint size, MPI_Info, void* base) {
  const Call call("MPI_Alloc_mem");
  if (call.rejected()) return call.end(reject_in_child());
  if (const int code = given({{"base", base}}); code != MPI_SUCCESS) return call.end(code);
  if (size < 0)
    return call.end(fail(MPI_ERR_ARG, "the size is %lld; expected: at least 0", static_cast<long long>(size)));
  constexpr std::size_t kLine = 64;
  const std::size_t bytes = (static_cast<std::size_t>(size) / kLine + 1) * kLine;
  void* const memory = std::aligned_alloc(kLine, bytes);
  if (memory == nullptr) return call.end(fail(MPI_ERR_NO_MEM, "no memory for %zu bytes", bytes));
  std::memcpy(base, &memory, sizeof memory);  // the caller gives the address of a pointer
  return MPI_SUCCESS;
}
CANELE_MPI_NAME(Alloc_mem);

extern "C" int PMPI_Free_mem(void* base) {
  const Call call("MPI_Free_mem");
  if (call.rejected()) return call.end(reject_in_child());
  std::free(base);
  return MPI_SUCCESS;
}
CANELE_MPI_NAME(Free_mem);

extern "C" int PMPI_Win_create(void* base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win* window) {
  return make_window("MPI_Win_create", comm, {MPI_WIN_FLAVOR_CREATE, base, size, unit, info}, nullptr, window);
}
CANELE_MPI_NAME(Win_create);

extern "C" int PMPI_Win_create_c(void* base, MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm,
                                 MPI_Win* window) {
  return make_window("MPI_Win_create_c", comm, {MPI_WIN_FLAVOR_CREATE, base, size, unit, info}, nullptr, window);
}
CANELE_MPI_NAME(Win_create_c);

extern "C" int PMPI_Win_allocate(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* window) {
  return make_window("MPI_Win_allocate", comm, {MPI_WIN_FLAVOR_ALLOCATE, nullptr, size, unit, info}, base, window);
}
CANELE_MPI_NAME(Win_allocate);

extern "C" int PMPI_Win_allocate_c(MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void* base,
                                   MPI_Win* window) {
  return make_window("MPI_Win_allocate_c", comm, {MPI_WIN_FLAVOR_ALLOCATE, nullptr, size, unit, info}, base, window);
}
CANELE_MPI_NAME(Win_allocate_c);

extern "C" int PMPI_Win_allocate_shared(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base,
                                        MPI_Win* window) {
  return make_window("MPI_Win_allocate_shared", comm, {MPI_WIN_FLAVOR_SHARED, nullptr, size, unit, info}, base, window);
}
CANELE_MPI_NAME(Win_allocate_shared);

extern "C" int PMPI_Win_allocate_shared_c(MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void* base,
                                          MPI_Win* window) {
  return make_window("MPI_Win_allocate_shared_c", comm, {MPI_WIN_FLAVOR_SHARED, nullptr, size, unit, info}, base,
                     window);
}
CANELE_MPI_NAME(Win_allocate_shared_c);

extern "C" int PMPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* window) {
  return make_window("MPI_Win_create_dynamic", comm, {MPI_WIN_FLAVOR_DYNAMIC, MPI_BOTTOM, 0, 1, info}, nullptr, window);
}
CANELE_MPI_NAME(Win_create_dynamic);

extern "C" int PMPI_Win_attach(MPI_Win window, void* base, MPI_Aint size) {
  return with_window("MPI_Win_attach", window, [&](Window& w) { return attach_memory(w, base, size); });
}
CANELE_MPI_NAME(Win_attach);

extern "C" int PMPI_Win_detach(MPI_Win window, const void* base) {
  return with_window("MPI_Win_detach", window, [&](Window& w) { return detach_memory(w, base); });
}
CANELE_MPI_NAME(Win_detach);

extern "C" MPI_Aint PMPI_Aint_add(MPI_Aint address, MPI_Aint displacement) { return address + displacement; }
CANELE_MPI_NAME(Aint_add);

extern "C" MPI_Aint PMPI_Aint_diff(MPI_Aint first, MPI_Aint second) { return first - second; }
CANELE_MPI_NAME(Aint_diff);

extern "C" int PMPI_Win_shared_query(MPI_Win window, int rank, MPI_Aint* size, int* unit, void* base) {
  return query_shared("MPI_Win_shared_query", window, rank, size, unit, base);
}
CANELE_MPI_NAME(Win_shared_query);

extern "C" int PMPI_Win_shared_query_c(MPI_Win window, int rank, MPI_Aint* size, MPI_Aint* unit, void* base) {
  return query_shared("MPI_Win_shared_query_c", window, rank, size, unit, base);
}
CANELE_MPI_NAME(Win_shared_query_c);

extern "C" int PMPI_Win_free(MPI_Win* window) {
  const Call call("MPI_Win_free");
  if (call.rejected()) return call.end(reject_in_child());
  if (const int code = given({{"window", window}}); code != MPI_SUCCESS) return call.end(code);
  Window* found = nullptr;
  if (const int code = get_window(*window, &found); code != MPI_SUCCESS) return call.end(code);
  int code = may_block();
  if (code == MPI_SUCCESS) code = found->attributes.remove_all(*window);
  MPI_Errhandler handler = found->comm->error_handler().share();  // the window may end before its error is reported
  const ErrorTarget target{handler, *window};
  if (code == MPI_SUCCESS) code = free_window(window);
  call.end_with(code, target);
  free_error_handler(&handler);
  return code;
}
CANELE_MPI_NAME(Win_free);

extern "C" int PMPI_Win_get_group(MPI_Win window, MPI_Group* group) {
  return with_window("MPI_Win_get_group", window, [&](const Window& w) {
    const int code = given({{"group", group}});
    return code == MPI_SUCCESS ? new_group(w.comm->ranks(), group) : code;
  });
}
CANELE_MPI_NAME(Win_get_group);

extern "C" int PMPI_Win_set_name(MPI_Win window, const char* name) {
  return with_window("MPI_Win_set_name", window, [&](const Window& w) {
    const int code = given({{"name", name}});
    if (code == MPI_SUCCESS) w.comm->set_name(name);
    return code;
  });
}
CANELE_MPI_NAME(Win_set_name);

extern "C" int PMPI_Win_get_name(MPI_Win window, char* name, int* length) {
  return with_window("MPI_Win_get_name", window, [&](const Window& w) {
    const int code = given({{"name", name}, {"length", length}});
    if (code == MPI_SUCCESS) w.comm->name(name, length);
    return code;
  });
}
CANELE_MPI_NAME(Win_get_name);

extern "C" int PMPI_Win_set_info(MPI_Win window, MPI_Info info) {
  return with_window("MPI_Win_set_info", window, [&](Window& w) {
    InfoPairs hints;
    const int code = info_pairs(info, &hints);
    if (code == MPI_SUCCESS) take_hints(w, hints);
    return code;
  });
}
CANELE_MPI_NAME(Win_set_info);

extern "C" int PMPI_Win_get_info(MPI_Win window, MPI_Info* info) {
  return with_window("MPI_Win_get_info", window, [&](Window& w) {
    if (const int code = given({{"info", info}}); code != MPI_SUCCESS) return code;
    const std::lock_guard guard(w.mutex);
    return new_object_info(w.hints, info);
  });
}
CANELE_MPI_NAME(Win_get_info);
