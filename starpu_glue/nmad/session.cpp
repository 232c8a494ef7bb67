// SPDX-License-Identifier: BSD-3-Clause
//
// From communicators to nm sessions and gates, and back. Used by StarPU for every request, from any thread.
//
// The session is opened locally at the first call for a communicator. From then on the communicator lives until
// MPI_Finalize, even if the program frees it, because StarPU may keep the session.
#include <nm_launcher_interface.h>
#include <nm_mpi_nmad.h>

#include <mutex>

#include "starpu_glue/mpi/communicators/call.hpp"
#include "starpu_glue/mpi/core/state.hpp"
#include "starpu_glue/nmad/internal.hpp"

using namespace canele;

namespace {

constinit std::mutex opening;
constinit nm_session_s* all_sessions = nullptr;

mpi::Communicator& communicator(mpi::Function function, MPI_Comm comm) {
  const mpi::Call call(function);
  if (call.rejected()) call.end_with(mpi::reject_in_child(), {MPI_ERRORS_ARE_FATAL, nullptr});
  mpi::Communicator* found = nullptr;
  const int code = mpi::get_communicator(comm, &found);
  if (code == MPI_SUCCESS) return *found;
  call.end_with(code, {MPI_ERRORS_ARE_FATAL, nullptr});
  __builtin_unreachable();
}

nm_session_s* open_session(mpi::Communicator& comm) {
  const std::lock_guard guard(opening);
  if (nm_session_s* session = comm.nmad().load(std::memory_order_acquire)) return session;  // another thread was first
  auto* made = new nm_session_s;
  made->comm = &comm;
  const std::string label = comm.label() + ".n";
  if (canele_session_open(mpi::engine(), label.c_str(), CANELE_ORDER_PER_TAG, &made->session) != CANELE_OK) {
    mpi::fatal("nm_mpi_nmad_dest: the session %s could not be opened: %s", label.c_str(), canele_error_detail());
  }
  made->next = all_sessions;
  all_sessions = made;
  comm.add_reference();
  comm.nmad().store(made, std::memory_order_release);  // pairs with the acquire load in session_of
  return made;
}

}  // namespace

nm_session_s* nmad::session_of(mpi::Communicator& comm) {
  nm_session_s* session = comm.nmad().load(std::memory_order_acquire);
  return session != nullptr ? session : open_session(comm);
}

extern "C" void nm_mpi_nmad_dest(nm_session_t* session, nm_gate_t* gate, MPI_Comm comm, int rank) {
  mpi::Communicator& found = communicator("nm_mpi_nmad_dest", comm);
  if (rank < 0 || rank >= found.size()) {
    mpi::fatal("nm_mpi_nmad_dest: rank %d is not in the communicator, which has the ranks 0 to %d", rank,
               found.size() - 1);
  }
  *session = nmad::session_of(found);
  *gate = nmad::gate_of(found.world_rank(rank));
}

extern "C" nm_comm_t nm_mpi_comm(MPI_Comm comm) {
  return reinterpret_cast<nm_comm_t>(&communicator("nm_mpi_comm", comm));
}

extern "C" nm_comm_t nm_comm_get_by_session(nm_session_t session) { return reinterpret_cast<nm_comm_t>(session->comm); }
