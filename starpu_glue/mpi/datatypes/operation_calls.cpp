// SPDX-License-Identifier: BSD-3-Clause
//
// The MPI_Op_ functions and MPI_Reduce_local, called by their entry points. Any thread.
//
// The program says whether its operator commutes. If it does, the engine chooses the order in which ranks are combined.
#include "calls/collectives.hpp"
#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/datatypes/operation.hpp"
#include "starpu_glue/mpi/datatypes/transfer.hpp"

namespace canele::mpi::calls {

int op_create(const UserFunction& user_fn, int commute, MPI_Op* op) { return new_operator(user_fn, commute != 0, op); }

int op_free(MPI_Op* op) { return free_operator(op); }

int op_commutative(MPI_Op op, int* commute) {
  bool commutes = false;
  const int code = is_commutative(op, &commutes);
  if (code == MPI_SUCCESS) *commute = commutes ? 1 : 0;
  return code;
}

int reduce_local(const void* inbuf, void* inoutbuf, MPI_Count count, Type& datatype, MPI_Op op) {
  if (inbuf == MPI_IN_PLACE || inoutbuf == MPI_IN_PLACE)
    return fail(MPI_ERR_BUFFER, "MPI_IN_PLACE is not allowed here; expected: two buffers");
  const bool has_data = count > 0 && datatype.size > 0;
  int code = MPI_SUCCESS;
  if (has_data && datatype.predefined) code = given({{"inbuf", inbuf}, {"inoutbuf", inoutbuf}});
  if (code == MPI_SUCCESS && has_data && inbuf == inoutbuf) code = fail(MPI_ERR_BUFFER, "inbuf is also inoutbuf");
  if (code == MPI_SUCCESS) code = check_size(count, datatype);
  if (code == MPI_SUCCESS && has_data) code = check_host_buffer({const_cast<void*>(inbuf), count, &datatype}, "inbuf");
  if (code == MPI_SUCCESS && has_data) code = check_host_buffer({inoutbuf, count, &datatype}, "inoutbuf");
  Operator operation;
  if (code == MPI_SUCCESS) code = get_operator(op, datatype, &operation);
  if (code == MPI_SUCCESS) operation.apply(inbuf, inoutbuf, count, datatype);
  return code;
}

}  // namespace canele::mpi::calls
