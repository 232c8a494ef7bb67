// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Op_ functions, and MPI_Reduce_local. Called from any thread.
//
// The program says whether its operator commutes. If it does, the engine chooses the order in which ranks are combined.
#include "starpu_glue/mpi/api.hpp"
#include "starpu_glue/mpi/operation.hpp"
#include "starpu_glue/mpi/request.hpp"

using namespace canele::mpi;

extern "C" int PMPI_Op_create(MPI_User_function* function, int commute, MPI_Op* op) {
  const Call call("MPI_Op_create");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"op", op}}); code != MPI_SUCCESS) return call.end(code);
  return call.end(new_operator(function, commute != 0, op));
}
CANELE_MPI_NAME(Op_create);

extern "C" int PMPI_Op_free(MPI_Op* op) {
  const Call call("MPI_Op_free");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"op", op}}); code != MPI_SUCCESS) return call.end(code);
  return call.end(free_operator(op));
}
CANELE_MPI_NAME(Op_free);

extern "C" int PMPI_Op_commutative(MPI_Op op, int* commute) {
  const Call call("MPI_Op_commutative");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"commute", commute}}); code != MPI_SUCCESS) return call.end(code);
  bool commutes = false;
  const int code = is_commutative(op, &commutes);
  if (code == MPI_SUCCESS) *commute = commutes ? 1 : 0;
  return call.end(code);
}
CANELE_MPI_NAME(Op_commutative);

extern "C" int PMPI_Reduce_local(const void* in, void* inout, int count, MPI_Datatype type, MPI_Op op) {
  const Call call("MPI_Reduce_local");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  Buffer buffer;
  Operator operation;
  int code = get_buffer(inout, count, type, &buffer);
  if (in == MPI_IN_PLACE || inout == MPI_IN_PLACE) {
    code = fail(MPI_ERR_BUFFER, "MPI_IN_PLACE is not allowed here; expected: two buffers");
  }
  if (code == MPI_SUCCESS && buffer.size() > 0 && buffer.type->predefined)
    code = given({{"inbuf", in}, {"inoutbuf", inout}});
  if (code == MPI_SUCCESS && in == inout && buffer.size() > 0) {
    code = fail(MPI_ERR_BUFFER, "inbuf is also inoutbuf");
  }
  if (code == MPI_SUCCESS) code = get_operator(op, *buffer.type, &operation);
  if (code == MPI_SUCCESS) operation.apply(in, inout, count, type);
  return call.end(code);
}
CANELE_MPI_NAME(Reduce_local);
