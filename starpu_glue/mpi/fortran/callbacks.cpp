// SPDX-License-Identifier: BSD-3-Clause
//
// Functions of the program that are written in Fortran, except those of attributes. Any thread.
//
// A Fortran procedure gets each argument by its address. So do the functions of operators and of error handlers in C,
// and a handle's number lies in the first bytes of the handle. These procedures are given to C as they are. Generalised
// requests have functions in C between.
#include <bit>
#include <memory>

#include "starpu_glue/mpi/fortran/convert.hpp"

namespace canele::mpi::fortran {
namespace {

static_assert(std::endian::native == std::endian::little, "a handle begins with its number");

/// The procedures of a generalised request, and the state that they are given.
struct Generalised {
  void (*query)(MPI_Aint* extra_state, MPI_Status* status, MPI_Fint* ierror);
  void (*free)(MPI_Aint* extra_state, MPI_Fint* ierror);
  void (*cancel)(MPI_Aint* extra_state, MPI_Fint* complete, MPI_Fint* ierror);
  MPI_Aint extra_state;
};

int query_generalised(void* extra_state, MPI_Status* status) {
  auto& request = *static_cast<Generalised*>(extra_state);
  MPI_Fint code = MPI_SUCCESS;
  request.query(&request.extra_state, status, &code);
  return code;
}

/// It is called once, as the last one.
int free_generalised(void* extra_state) {
  const std::unique_ptr<Generalised> request(static_cast<Generalised*>(extra_state));
  MPI_Fint code = MPI_SUCCESS;
  request->free(&request->extra_state, &code);
  return code;
}

int cancel_generalised(void* extra_state, int complete) {
  auto& request = *static_cast<Generalised*>(extra_state);
  MPI_Fint code = MPI_SUCCESS;
  request.cancel(&request.extra_state, &complete, &code);
  return code;
}

}  // namespace
}  // namespace canele::mpi::fortran

using namespace canele::mpi::fortran;

CANELE_FORTRAN void mpi_grequest_start_(decltype(Generalised::query) query_fn, decltype(Generalised::free) free_fn,
                                        decltype(Generalised::cancel) cancel_fn, const MPI_Aint* extra_state,
                                        MPI_Fint* request, MPI_Fint* ierror) try {
  auto state = std::make_unique<Generalised>(Generalised{query_fn, free_fn, cancel_fn, *extra_state});
  MPI_Request made = MPI_REQUEST_NULL;
  const int code = MPI_Grequest_start(query_generalised, free_generalised, cancel_generalised, state.get(), &made);
  if (code == MPI_SUCCESS) {
    *request = to_integer(made);
    static_cast<void>(state.release());
  }
  answer(ierror, code);
} catch (const std::bad_alloc&) {
  answer(ierror, MPI_ERR_NO_MEM);
}
CANELE_FORTRAN_NAMES(grequest_start, GREQUEST_START);
CANELE_F08_NAMES(grequest_start);
