// SPDX-License-Identifier: BSD-3-Clause
//
// The forms for large counts of the functions on windows: MPI_Put_c to MPI_Win_shared_query_c. Called from any thread.
//
// The other forms have fast paths (api_access.cpp).
#include <cstring>

#include "starpu_glue/mpi/windows/accumulate.hpp"
#include "starpu_glue/mpi/windows/api_window.hpp"
#include "starpu_glue/mpi/windows/shared.hpp"

using namespace canele::mpi;

extern "C" int PMPI_Put_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int rank,
                          MPI_Aint displacement, MPI_Count target_count, MPI_Datatype target_type, MPI_Win window) {
  return with_window("MPI_Put_c", window, [&](Window& w) {
    return put(w, {origin, origin_count, origin_type}, {rank, displacement, target_count, target_type}, nullptr);
  });
}
CANELE_MPI_NAME(Put_c);

extern "C" int PMPI_Rput_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int rank,
                           MPI_Aint displacement, MPI_Count target_count, MPI_Datatype target_type, MPI_Win window,
                           MPI_Request* request) {
  return start_access("MPI_Rput_c", window, request, [&](Window& w, AccessRequest* access) {
    return put(w, {origin, origin_count, origin_type}, {rank, displacement, target_count, target_type}, access);
  });
}
CANELE_MPI_NAME(Rput_c);

extern "C" int PMPI_Get_c(void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int rank,
                          MPI_Aint displacement, MPI_Count target_count, MPI_Datatype target_type, MPI_Win window) {
  return with_window("MPI_Get_c", window, [&](Window& w) {
    return get(w, {origin, origin_count, origin_type}, {rank, displacement, target_count, target_type}, nullptr);
  });
}
CANELE_MPI_NAME(Get_c);

extern "C" int PMPI_Rget_c(void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int rank,
                           MPI_Aint displacement, MPI_Count target_count, MPI_Datatype target_type, MPI_Win window,
                           MPI_Request* request) {
  return start_access("MPI_Rget_c", window, request, [&](Window& w, AccessRequest* access) {
    return get(w, {origin, origin_count, origin_type}, {rank, displacement, target_count, target_type}, access);
  });
}
CANELE_MPI_NAME(Rget_c);

extern "C" int PMPI_Accumulate_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int rank,
                                 MPI_Aint displacement, MPI_Count target_count, MPI_Datatype target_type, MPI_Op op,
                                 MPI_Win window) {
  return with_window("MPI_Accumulate_c", window, [&](Window& w) {
    return accumulate(w, {origin, origin_count, origin_type}, nullptr, {rank, displacement, target_count, target_type},
                      op, nullptr);
  });
}
CANELE_MPI_NAME(Accumulate_c);

extern "C" int PMPI_Raccumulate_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int rank,
                                  MPI_Aint displacement, MPI_Count target_count, MPI_Datatype target_type, MPI_Op op,
                                  MPI_Win window, MPI_Request* request) {
  return start_access("MPI_Raccumulate_c", window, request, [&](Window& w, AccessRequest* access) {
    return accumulate(w, {origin, origin_count, origin_type}, nullptr, {rank, displacement, target_count, target_type},
                      op, access);
  });
}
CANELE_MPI_NAME(Raccumulate_c);

extern "C" int PMPI_Get_accumulate_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, void* result,
                                     MPI_Count result_count, MPI_Datatype result_type, int rank, MPI_Aint displacement,
                                     MPI_Count target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win window) {
  return with_window("MPI_Get_accumulate_c", window, [&](Window& w) {
    const OriginData before{result, result_count, result_type};
    return accumulate(w, {origin, origin_count, origin_type}, &before, {rank, displacement, target_count, target_type},
                      op, nullptr);
  });
}
CANELE_MPI_NAME(Get_accumulate_c);

extern "C" int PMPI_Rget_accumulate_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type,
                                      void* result, MPI_Count result_count, MPI_Datatype result_type, int rank,
                                      MPI_Aint displacement, MPI_Count target_count, MPI_Datatype target_type,
                                      MPI_Op op, MPI_Win window, MPI_Request* request) {
  return start_access("MPI_Rget_accumulate_c", window, request, [&](Window& w, AccessRequest* access) {
    const OriginData before{result, result_count, result_type};
    return accumulate(w, {origin, origin_count, origin_type}, &before, {rank, displacement, target_count, target_type},
                      op, access);
  });
}
CANELE_MPI_NAME(Rget_accumulate_c);

extern "C" int PMPI_Win_create_c(void* base, MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm,
                                 MPI_Win* window) {
  return make_window("MPI_Win_create_c", comm, {MPI_WIN_FLAVOR_CREATE, base, size, unit, info}, nullptr, window);
}
CANELE_MPI_NAME(Win_create_c);

extern "C" int PMPI_Win_allocate_c(MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void* base,
                                   MPI_Win* window) {
  return make_window("MPI_Win_allocate_c", comm, {MPI_WIN_FLAVOR_ALLOCATE, nullptr, size, unit, info}, base, window);
}
CANELE_MPI_NAME(Win_allocate_c);

extern "C" int PMPI_Win_allocate_shared_c(MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void* base,
                                          MPI_Win* window) {
  return make_window("MPI_Win_allocate_shared_c", comm, {MPI_WIN_FLAVOR_SHARED, nullptr, size, unit, info}, base,
                     window);
}
CANELE_MPI_NAME(Win_allocate_shared_c);

extern "C" int PMPI_Win_shared_query_c(MPI_Win window, int rank, MPI_Aint* size, MPI_Aint* unit, void* base) {
  return with_window("MPI_Win_shared_query_c", window, [&](const Window& w) {
    int code = given({{"size", size}, {"unit", unit}, {"base", base}});
    void* found = nullptr;
    int narrow = 0;
    if (code == MPI_SUCCESS) code = find_shared_part(w, rank, size, &narrow, &found);
    if (code != MPI_SUCCESS) return code;
    *unit = narrow;
    std::memcpy(base, &found, sizeof found);  // the caller gives the address of a pointer
    return code;
  });
}
CANELE_MPI_NAME(Win_shared_query_c);
