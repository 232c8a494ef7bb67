// SPDX-License-Identifier: BSD-3-Clause
//
// The functions on error handlers of communicators, and on error classes and codes, called by their entry points. Any
// thread.
#include <cstring>

#include "calls/errors.hpp"
#include "starpu_glue/mpi/communicators/call.hpp"
#include "starpu_glue/mpi/core/error_codes.hpp"
#include "starpu_glue/mpi/core/error_handlers.hpp"

namespace canele::mpi::calls {

int comm_create_errhandler(MPI_Comm_errhandler_function* comm_errhandler_fn, MPI_Errhandler* errhandler) {
  return new_error_handler<MPI_Comm>(comm_errhandler_fn, errhandler);
}

int comm_set_errhandler(Communicator& comm, MPI_Errhandler errhandler) {
  return comm.error_handler().set(ObjectKind::communicator, errhandler);
}

int comm_get_errhandler(Communicator& comm, MPI_Errhandler* errhandler) {
  *errhandler = comm.error_handler().share();
  return MPI_SUCCESS;
}

int comm_call_errhandler(Communicator& comm, int errorcode) {
  report_error("MPI_Comm_call_errhandler", errorcode, comm.error_target());
  return MPI_SUCCESS;
}

int errhandler_free(MPI_Errhandler* errhandler) { return free_error_handler(errhandler); }

int errhandler_create(MPI_Comm_errhandler_function* handler_fn, MPI_Errhandler* errhandler) {
  return comm_create_errhandler(handler_fn, errhandler);
}

int errhandler_set(Communicator& comm, MPI_Errhandler errhandler) { return comm_set_errhandler(comm, errhandler); }

int errhandler_get(Communicator& comm, MPI_Errhandler* errhandler) { return comm_get_errhandler(comm, errhandler); }

int error_class(int errorcode, int* errorclass) {
  *errorclass = class_of_code(errorcode);
  return MPI_SUCCESS;
}

int error_string(int errorcode, char* string, int* resultlen) {
  describe_error(errorcode, string, MPI_MAX_ERROR_STRING);
  *resultlen = static_cast<int>(std::strlen(string));
  return MPI_SUCCESS;
}

int add_error_class(int* errorclass) { return mpi::add_error_class(errorclass); }

int add_error_code(int errorclass, int* errorcode) { return mpi::add_error_code(errorclass, errorcode); }

int add_error_string(int errorcode, const char* string) { return set_error_text(errorcode, string); }

int remove_error_class(int errorclass) { return mpi::remove_error_class(errorclass); }

int remove_error_code(int errorcode) { return mpi::remove_error_code(errorcode); }

int remove_error_string(int errorcode) { return remove_error_text(errorcode); }

}  // namespace canele::mpi::calls
