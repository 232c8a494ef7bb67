// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Put to MPI_Rget_accumulate: one-sided operations on windows. Called from any thread.
//
// Those with a request return one that is complete from the start if there was nothing to do.
#include "starpu_glue/mpi/messages/request.hpp"
#include "starpu_glue/mpi/windows/access.hpp"
#include "starpu_glue/mpi/windows/accumulate.hpp"
#include "starpu_glue/mpi/windows/api_window.hpp"
#include "starpu_glue/mpi/windows/fast.hpp"

namespace canele::mpi {
namespace {

/// Returns whether an operation can take the fast path. Its data is of one type, and `memory` is given.
bool is_fast(FastAccess& access, MPI_Win window, int rank, MPI_Aint displacement, const OriginData& origin,
             int target_count, MPI_Datatype target_type) {
  return origin.type == target_type && origin.count == target_count && origin.memory != nullptr &&
         access.has_target(window, rank) && access.has_data(target_type, target_count, displacement);
}

/// The same for an atomic operation on one word.
bool is_fast_word(FastAccess& access, MPI_Win window, int rank, MPI_Aint displacement, MPI_Datatype type) {
  return access.has_target(window, rank) && access.has_data(type, 1, displacement) && access.is_mapped() &&
         access.has_nothing_pending() && access.is_word();
}

}  // namespace
}  // namespace canele::mpi

using namespace canele::mpi;

extern "C" int PMPI_Put(const void* origin, int origin_count, MPI_Datatype origin_type, int rank, MPI_Aint displacement,
                        int target_count, MPI_Datatype target_type, MPI_Win window) {
  FastAccess fast;
  if (is_fast(fast, window, rank, displacement, {origin, origin_count, origin_type}, target_count, target_type) &&
      fast.put(origin))
    return MPI_SUCCESS;
  return with_window("MPI_Put", window, [&](Window& w) {
    return put(w, {origin, origin_count, origin_type}, {rank, displacement, target_count, target_type}, nullptr);
  });
}
CANELE_MPI_NAME(Put);

extern "C" int PMPI_Rput(const void* origin, int origin_count, MPI_Datatype origin_type, int rank,
                         MPI_Aint displacement, int target_count, MPI_Datatype target_type, MPI_Win window,
                         MPI_Request* request) {
  return start_access("MPI_Rput", window, request, [&](Window& w, AccessRequest* access) {
    return put(w, {origin, origin_count, origin_type}, {rank, displacement, target_count, target_type}, access);
  });
}
CANELE_MPI_NAME(Rput);

extern "C" int PMPI_Get(void* origin, int origin_count, MPI_Datatype origin_type, int rank, MPI_Aint displacement,
                        int target_count, MPI_Datatype target_type, MPI_Win window) {
  FastAccess fast;
  if (is_fast(fast, window, rank, displacement, {origin, origin_count, origin_type}, target_count, target_type) &&
      fast.get(origin))
    return MPI_SUCCESS;
  return with_window("MPI_Get", window, [&](Window& w) {
    return get(w, {origin, origin_count, origin_type}, {rank, displacement, target_count, target_type}, nullptr);
  });
}
CANELE_MPI_NAME(Get);

extern "C" int PMPI_Rget(void* origin, int origin_count, MPI_Datatype origin_type, int rank, MPI_Aint displacement,
                         int target_count, MPI_Datatype target_type, MPI_Win window, MPI_Request* request) {
  return start_access("MPI_Rget", window, request, [&](Window& w, AccessRequest* access) {
    return get(w, {origin, origin_count, origin_type}, {rank, displacement, target_count, target_type}, access);
  });
}
CANELE_MPI_NAME(Rget);

extern "C" int PMPI_Fetch_and_op(const void* origin, void* result, MPI_Datatype type, int rank, MPI_Aint displacement,
                                 MPI_Op op, MPI_Win window) {
  FastAccess fast;
  if (canele_atomic_operation operation{}; origin != nullptr && result != nullptr &&
                                           is_fast_word(fast, window, rank, displacement, type) &&
                                           find_word_operation(op, fast.type(), &operation)) {
    fast.apply(operation, word_at(origin, fast.type().size), 0, result);
    return MPI_SUCCESS;
  }
  return with_window("MPI_Fetch_and_op", window, [&](Window& w) {
    int code = given({{"result", result}});
    if (code == MPI_SUCCESS && op != MPI_NO_OP) code = given({{"origin", origin}});
    return code == MPI_SUCCESS ? fetch_and_op(w, origin, result, {rank, displacement, 1, type}, op) : code;
  });
}
CANELE_MPI_NAME(Fetch_and_op);

extern "C" int PMPI_Compare_and_swap(const void* origin, const void* compare, void* result, MPI_Datatype type, int rank,
                                     MPI_Aint displacement, MPI_Win window) {
  FastAccess fast;
  if (origin != nullptr && compare != nullptr && result != nullptr &&
      is_fast_word(fast, window, rank, displacement, type) && can_be_compared(fast.type())) {
    const std::size_t size = fast.type().size;
    fast.apply(CANELE_ATOMIC_COMPARE_AND_SWAP, word_at(origin, size), word_at(compare, size), result);
    return MPI_SUCCESS;
  }
  return with_window("MPI_Compare_and_swap", window, [&](Window& w) {
    const int code = given({{"origin", origin}, {"compare", compare}, {"result", result}});
    return code == MPI_SUCCESS ? compare_and_swap(w, origin, compare, result, {rank, displacement, 1, type}) : code;
  });
}
CANELE_MPI_NAME(Compare_and_swap);

extern "C" int PMPI_Accumulate(const void* origin, int origin_count, MPI_Datatype origin_type, int rank,
                               MPI_Aint displacement, int target_count, MPI_Datatype target_type, MPI_Op op,
                               MPI_Win window) {
  return with_window("MPI_Accumulate", window, [&](Window& w) {
    return accumulate(w, {origin, origin_count, origin_type}, nullptr, {rank, displacement, target_count, target_type},
                      op, nullptr);
  });
}
CANELE_MPI_NAME(Accumulate);

extern "C" int PMPI_Raccumulate(const void* origin, int origin_count, MPI_Datatype origin_type, int rank,
                                MPI_Aint displacement, int target_count, MPI_Datatype target_type, MPI_Op op,
                                MPI_Win window, MPI_Request* request) {
  return start_access("MPI_Raccumulate", window, request, [&](Window& w, AccessRequest* access) {
    return accumulate(w, {origin, origin_count, origin_type}, nullptr, {rank, displacement, target_count, target_type},
                      op, access);
  });
}
CANELE_MPI_NAME(Raccumulate);

extern "C" int PMPI_Get_accumulate(const void* origin, int origin_count, MPI_Datatype origin_type, void* result,
                                   int result_count, MPI_Datatype result_type, int rank, MPI_Aint displacement,
                                   int target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win window) {
  return with_window("MPI_Get_accumulate", window, [&](Window& w) {
    const OriginData before{result, result_count, result_type};
    return accumulate(w, {origin, origin_count, origin_type}, &before, {rank, displacement, target_count, target_type},
                      op, nullptr);
  });
}
CANELE_MPI_NAME(Get_accumulate);

extern "C" int PMPI_Rget_accumulate(const void* origin, int origin_count, MPI_Datatype origin_type, void* result,
                                    int result_count, MPI_Datatype result_type, int rank, MPI_Aint displacement,
                                    int target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win window,
                                    MPI_Request* request) {
  return start_access("MPI_Rget_accumulate", window, request, [&](Window& w, AccessRequest* access) {
    const OriginData before{result, result_count, result_type};
    return accumulate(w, {origin, origin_count, origin_type}, &before, {rank, displacement, target_count, target_type},
                      op, access);
  });
}
CANELE_MPI_NAME(Rget_accumulate);
