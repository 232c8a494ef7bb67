// SPDX-License-Identifier: BSD-3-Clause
//
// The functions on attributes of communicators and datatypes, called by their entry points. Any thread.
//
// The names of MPI-1 are those of communicators.
#include <climits>
#include <cstring>

#include "calls/attributes.hpp"
#include "starpu_glue/mpi/core/attributes.hpp"
#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/core/error_codes.hpp"
#include "starpu_glue/mpi/core/state.hpp"

namespace canele::mpi {
namespace {

bool is_predefined_keyval(int keyval) { return keyval >= MPI_TAG_UB && keyval <= MPI_UNIVERSE_SIZE; }

/// Returns where the number of ranks of the job stands.
const int* universe_size() {
  static const int size = canele_size(engine());
  return &size;
}

/// Returns the value of an attribute that all communicators have; nullptr if it is none of them.
const int* predefined_attribute(int keyval) {
  static constexpr int tag_upper_bound = INT_MAX, io = MPI_ANY_SOURCE, host = MPI_PROC_NULL, wtime_is_global = 0;
  switch (keyval) {
    case MPI_TAG_UB:
      return &tag_upper_bound;
    case MPI_IO:
      return &io;
    case MPI_HOST:
      return &host;
    case MPI_WTIME_IS_GLOBAL:
      return &wtime_is_global;
    case MPI_LASTUSEDCODE:
      return last_used_code();
    case MPI_UNIVERSE_SIZE:  // no rank can be added
      return universe_size();
    default:
      return nullptr;
  }
}

int reject_predefined_key(int keyval) {
  if (!is_predefined_keyval(keyval)) return MPI_SUCCESS;
  return fail(MPI_ERR_KEYVAL, "a predefined attribute of a communicator cannot be changed");
}

}  // namespace

namespace calls {

int comm_create_keyval(MPI_Comm_copy_attr_function* comm_copy_attr_fn,
                       MPI_Comm_delete_attr_function* comm_delete_attr_fn, int* comm_keyval, void* extra_state) {
  return new_keyval<MPI_Comm>(comm_copy_attr_fn, comm_delete_attr_fn, extra_state, comm_keyval);
}

int comm_free_keyval(int* comm_keyval) { return free_keyval(ObjectKind::communicator, comm_keyval); }

int comm_set_attr(Communicator& comm, int comm_keyval, void* attribute_val) {
  const int code = reject_predefined_key(comm_keyval);
  return code == MPI_SUCCESS ? comm.attributes().set(comm.handle(), comm_keyval, attribute_val) : code;
}

int comm_get_attr(Communicator& comm, int comm_keyval, void* attribute_val, int* flag) {
  if (!is_predefined_keyval(comm_keyval)) return comm.attributes().get(comm.handle(), comm_keyval, attribute_val, flag);
  const int* const attribute = predefined_attribute(comm_keyval);
  *flag = attribute != nullptr ? 1 : 0;
  if (attribute != nullptr)
    std::memcpy(attribute_val, &attribute, sizeof attribute);  // the caller gives the address of a pointer
  return MPI_SUCCESS;
}

int comm_delete_attr(Communicator& comm, int comm_keyval) {
  const int code = reject_predefined_key(comm_keyval);
  return code == MPI_SUCCESS ? comm.attributes().remove(comm.handle(), comm_keyval) : code;
}

int keyval_create(MPI_Copy_function* copy_fn, MPI_Delete_function* delete_fn, int* keyval, void* extra_state) {
  return comm_create_keyval(copy_fn, delete_fn, keyval, extra_state);
}

int keyval_free(int* keyval) { return comm_free_keyval(keyval); }

int attr_put(Communicator& comm, int keyval, void* attribute_val) { return comm_set_attr(comm, keyval, attribute_val); }

int attr_get(Communicator& comm, int keyval, void* attribute_val, int* flag) {
  return comm_get_attr(comm, keyval, attribute_val, flag);
}

int attr_delete(Communicator& comm, int keyval) { return comm_delete_attr(comm, keyval); }

int type_create_keyval(MPI_Type_copy_attr_function* type_copy_attr_fn,
                       MPI_Type_delete_attr_function* type_delete_attr_fn, int* type_keyval, void* extra_state) {
  return new_keyval<MPI_Datatype>(type_copy_attr_fn, type_delete_attr_fn, extra_state, type_keyval);
}

int type_free_keyval(int* type_keyval) { return free_keyval(ObjectKind::datatype, type_keyval); }

int type_set_attr(Type& datatype, int type_keyval, void* attribute_val) {
  return datatype.attributes.set(datatype.handle, type_keyval, attribute_val);
}

int type_get_attr(Type& datatype, int type_keyval, void* attribute_val, int* flag) {
  return datatype.attributes.get(datatype.handle, type_keyval, attribute_val, flag);
}

int type_delete_attr(Type& datatype, int type_keyval) {
  return datatype.attributes.remove(datatype.handle, type_keyval);
}

}  // namespace calls
}  // namespace canele::mpi
