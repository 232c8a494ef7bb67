// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Put to MPI_Rget_accumulate, and their forms for large counts: one-sided operations on windows. Called from any
// thread.
//
// Those with a request return one that is complete from the start if there was nothing to do. MPI_Put, MPI_Get and the
// operations on one word have a fast path (fast.hpp).
#include "starpu_glue/mpi/messages/request.hpp"
#include "starpu_glue/mpi/windows/access.hpp"
#include "starpu_glue/mpi/windows/accumulate.hpp"
#include "starpu_glue/mpi/windows/api_window.hpp"
#include "starpu_glue/mpi/windows/fast.hpp"

namespace canele::mpi {
namespace {

/// Returns whether an operation can take the fast path. Its data is of one type, and `memory` is given.
[[gnu::always_inline]] inline bool is_fast(FastAccess& access, MPI_Win window, OriginData origin, TargetData target) {
  return origin.type == target.type && origin.count == target.count && origin.memory != nullptr &&
         access.has_target(window, target.rank) && access.has_data(target.type, target.count, target.displacement);
}

/// The same for an atomic operation on one word.
bool is_fast_word(FastAccess& access, MPI_Win window, int rank, MPI_Aint displacement, MPI_Datatype type) {
  return access.has_target(window, rank) && access.has_data(type, 1, displacement) && access.is_mapped() &&
         access.has_nothing_pending() && access.is_word();
}

/// Starts one operation with a request: perform(window, &request).
template <class Perform>
int start_access(Function function, MPI_Win handle, MPI_Request* request, Perform perform) {
  const Call call(function);
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"request", request}}); code != MPI_SUCCESS) return call.end(code);
  Window* window = nullptr;
  if (const int code = get_window(handle, &window); code != MPI_SUCCESS) return call.end(code);
  Request* made = nullptr;
  int code = new_access(*window->comm, &made);
  if (code != MPI_SUCCESS) return call.end(code, comm_of(window));
  AccessRequest access{&made->engine};
  code = perform(*window, &access);
  if (!access.is_posted) made->flags |= Request::proc_null;
  return call.end(publish_request(*made, code, request), comm_of(window));
}

// ---- the operations, each for both forms of its function

// The slow paths get copies, so that the fast ones need no memory for what a call names.

[[gnu::noinline]] int put_slowly(Function function, OriginData origin, TargetData target, MPI_Win window) {
  return with_window(function, window, [&](Window& w) { return put(w, origin, target, nullptr); });
}

[[gnu::always_inline]] inline int call_put(Function function, OriginData origin, TargetData target, MPI_Win window) {
  FastAccess fast;
  if (is_fast(fast, window, origin, target) && fast.put(origin.memory)) return MPI_SUCCESS;
  return put_slowly(function, origin, target, window);
}

int call_rput(Function function, const OriginData& origin, const TargetData& target, MPI_Win window,
              MPI_Request* request) {
  return start_access(function, window, request,
                      [&](Window& w, AccessRequest* access) { return put(w, origin, target, access); });
}

[[gnu::noinline]] int get_slowly(Function function, OriginData origin, TargetData target, MPI_Win window) {
  return with_window(function, window, [&](Window& w) { return get(w, origin, target, nullptr); });
}

[[gnu::always_inline]] inline int call_get(Function function, OriginData origin, TargetData target, MPI_Win window) {
  FastAccess fast;
  if (is_fast(fast, window, origin, target) && fast.get(const_cast<void*>(origin.memory))) return MPI_SUCCESS;
  return get_slowly(function, origin, target, window);
}

int call_rget(Function function, const OriginData& origin, const TargetData& target, MPI_Win window,
              MPI_Request* request) {
  return start_access(function, window, request,
                      [&](Window& w, AccessRequest* access) { return get(w, origin, target, access); });
}

/// `before` gets what was at the target; nullptr: nothing does.
int call_accumulate(Function function, const OriginData& origin, const OriginData* before, const TargetData& target,
                    MPI_Op op, MPI_Win window) {
  return with_window(function, window, [&](Window& w) { return accumulate(w, origin, before, target, op, nullptr); });
}

int call_raccumulate(Function function, const OriginData& origin, const OriginData* before, const TargetData& target,
                     MPI_Op op, MPI_Win window, MPI_Request* request) {
  return start_access(function, window, request, [&](Window& w, AccessRequest* access) {
    return accumulate(w, origin, before, target, op, access);
  });
}

}  // namespace
}  // namespace canele::mpi

using namespace canele::mpi;

extern "C" int PMPI_Put(const void* origin, int origin_count, MPI_Datatype origin_type, int rank, MPI_Aint displacement,
                        int target_count, MPI_Datatype target_type, MPI_Win window) {
  return call_put("MPI_Put", {origin, origin_count, origin_type}, {rank, displacement, target_count, target_type},
                  window);
}
CANELE_MPI_NAME(Put);

extern "C" int PMPI_Put_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int rank,
                          MPI_Aint displacement, MPI_Count target_count, MPI_Datatype target_type, MPI_Win window) {
  return call_put("MPI_Put_c", {origin, origin_count, origin_type}, {rank, displacement, target_count, target_type},
                  window);
}
CANELE_MPI_NAME(Put_c);

extern "C" int PMPI_Rput(const void* origin, int origin_count, MPI_Datatype origin_type, int rank,
                         MPI_Aint displacement, int target_count, MPI_Datatype target_type, MPI_Win window,
                         MPI_Request* request) {
  return call_rput("MPI_Rput", {origin, origin_count, origin_type}, {rank, displacement, target_count, target_type},
                   window, request);
}
CANELE_MPI_NAME(Rput);

extern "C" int PMPI_Rput_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int rank,
                           MPI_Aint displacement, MPI_Count target_count, MPI_Datatype target_type, MPI_Win window,
                           MPI_Request* request) {
  return call_rput("MPI_Rput_c", {origin, origin_count, origin_type}, {rank, displacement, target_count, target_type},
                   window, request);
}
CANELE_MPI_NAME(Rput_c);

extern "C" int PMPI_Get(void* origin, int origin_count, MPI_Datatype origin_type, int rank, MPI_Aint displacement,
                        int target_count, MPI_Datatype target_type, MPI_Win window) {
  return call_get("MPI_Get", {origin, origin_count, origin_type}, {rank, displacement, target_count, target_type},
                  window);
}
CANELE_MPI_NAME(Get);

extern "C" int PMPI_Get_c(void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int rank,
                          MPI_Aint displacement, MPI_Count target_count, MPI_Datatype target_type, MPI_Win window) {
  return call_get("MPI_Get_c", {origin, origin_count, origin_type}, {rank, displacement, target_count, target_type},
                  window);
}
CANELE_MPI_NAME(Get_c);

extern "C" int PMPI_Rget(void* origin, int origin_count, MPI_Datatype origin_type, int rank, MPI_Aint displacement,
                         int target_count, MPI_Datatype target_type, MPI_Win window, MPI_Request* request) {
  return call_rget("MPI_Rget", {origin, origin_count, origin_type}, {rank, displacement, target_count, target_type},
                   window, request);
}
CANELE_MPI_NAME(Rget);

extern "C" int PMPI_Rget_c(void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int rank,
                           MPI_Aint displacement, MPI_Count target_count, MPI_Datatype target_type, MPI_Win window,
                           MPI_Request* request) {
  return call_rget("MPI_Rget_c", {origin, origin_count, origin_type}, {rank, displacement, target_count, target_type},
                   window, request);
}
CANELE_MPI_NAME(Rget_c);

extern "C" int PMPI_Accumulate(const void* origin, int origin_count, MPI_Datatype origin_type, int rank,
                               MPI_Aint displacement, int target_count, MPI_Datatype target_type, MPI_Op op,
                               MPI_Win window) {
  return call_accumulate("MPI_Accumulate", {origin, origin_count, origin_type}, nullptr,
                         {rank, displacement, target_count, target_type}, op, window);
}
CANELE_MPI_NAME(Accumulate);

extern "C" int PMPI_Accumulate_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int rank,
                                 MPI_Aint displacement, MPI_Count target_count, MPI_Datatype target_type, MPI_Op op,
                                 MPI_Win window) {
  return call_accumulate("MPI_Accumulate_c", {origin, origin_count, origin_type}, nullptr,
                         {rank, displacement, target_count, target_type}, op, window);
}
CANELE_MPI_NAME(Accumulate_c);

extern "C" int PMPI_Raccumulate(const void* origin, int origin_count, MPI_Datatype origin_type, int rank,
                                MPI_Aint displacement, int target_count, MPI_Datatype target_type, MPI_Op op,
                                MPI_Win window, MPI_Request* request) {
  return call_raccumulate("MPI_Raccumulate", {origin, origin_count, origin_type}, nullptr,
                          {rank, displacement, target_count, target_type}, op, window, request);
}
CANELE_MPI_NAME(Raccumulate);

extern "C" int PMPI_Raccumulate_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int rank,
                                  MPI_Aint displacement, MPI_Count target_count, MPI_Datatype target_type, MPI_Op op,
                                  MPI_Win window, MPI_Request* request) {
  return call_raccumulate("MPI_Raccumulate_c", {origin, origin_count, origin_type}, nullptr,
                          {rank, displacement, target_count, target_type}, op, window, request);
}
CANELE_MPI_NAME(Raccumulate_c);

extern "C" int PMPI_Get_accumulate(const void* origin, int origin_count, MPI_Datatype origin_type, void* result,
                                   int result_count, MPI_Datatype result_type, int rank, MPI_Aint displacement,
                                   int target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win window) {
  const OriginData before{result, result_count, result_type};
  return call_accumulate("MPI_Get_accumulate", {origin, origin_count, origin_type}, &before,
                         {rank, displacement, target_count, target_type}, op, window);
}
CANELE_MPI_NAME(Get_accumulate);

extern "C" int PMPI_Get_accumulate_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, void* result,
                                     MPI_Count result_count, MPI_Datatype result_type, int rank, MPI_Aint displacement,
                                     MPI_Count target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win window) {
  const OriginData before{result, result_count, result_type};
  return call_accumulate("MPI_Get_accumulate_c", {origin, origin_count, origin_type}, &before,
                         {rank, displacement, target_count, target_type}, op, window);
}
CANELE_MPI_NAME(Get_accumulate_c);

extern "C" int PMPI_Rget_accumulate(const void* origin, int origin_count, MPI_Datatype origin_type, void* result,
                                    int result_count, MPI_Datatype result_type, int rank, MPI_Aint displacement,
                                    int target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win window,
                                    MPI_Request* request) {
  const OriginData before{result, result_count, result_type};
  return call_raccumulate("MPI_Rget_accumulate", {origin, origin_count, origin_type}, &before,
                          {rank, displacement, target_count, target_type}, op, window, request);
}
CANELE_MPI_NAME(Rget_accumulate);

extern "C" int PMPI_Rget_accumulate_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type,
                                      void* result, MPI_Count result_count, MPI_Datatype result_type, int rank,
                                      MPI_Aint displacement, MPI_Count target_count, MPI_Datatype target_type,
                                      MPI_Op op, MPI_Win window, MPI_Request* request) {
  const OriginData before{result, result_count, result_type};
  return call_raccumulate("MPI_Rget_accumulate_c", {origin, origin_count, origin_type}, &before,
                          {rank, displacement, target_count, target_type}, op, window, request);
}
CANELE_MPI_NAME(Rget_accumulate_c);

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
