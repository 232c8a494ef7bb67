// SPDX-License-Identifier: BSD-3-Clause
//
// Sessions, their handles, and the sets of processes.
#include "starpu_glue/mpi/communicators/session.hpp"

#include <canele/canele.h>
#include <strings.h>

#include <memory>
#include <new>

#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/core/state.hpp"

namespace canele::mpi {

constinit SessionPool sessions_pool;

namespace {

constexpr const char* kSets[] = {"mpi://WORLD", "mpi://SELF"};

}  // namespace

int get_session(MPI_Session handle, Session** found) {
  *found = find_session(handle);
  if (*found != nullptr) return MPI_SUCCESS;
  if (handle == MPI_SESSION_NULL) return fail(MPI_ERR_SESSION, "the session is MPI_SESSION_NULL");
  return fail(MPI_ERR_SESSION, "0x%zx is not a session, or was finalized", handle_bits(handle));
}

int new_session(InfoPairs info, MPI_Errhandler handler, MPI_Session* handle) {
  auto session = std::make_unique<Session>(std::move(info), handler);
  std::atomic<Session*>* const slot = sessions_pool.take();
  if (slot == nullptr) return fail(MPI_ERR_NO_MEM, "no memory or no handle left for another session");
  slot->store(session.get(), std::memory_order_release);  // pairs with the acquire load in find_session
  *handle = SessionPool::open(*slot);
  session.release()->set_handle(*handle);
  return MPI_SUCCESS;
}

void free_session(MPI_Session handle) {
  Session* const session = find_session(handle);
  sessions_pool.release(handle);
  delete session;
}

int process_sets() { return static_cast<int>(std::size(kSets)); }

const char* process_set(int index) { return kSets[index]; }

int ranks_of_process_set(const char* name, const Session& session, RanksPointer* ranks) {
  if (strcasecmp(name, kSets[0]) == 0) {
    *ranks = std::make_shared<const Ranks>(canele_size(engine()), session.send_buffer());
  } else if (strcasecmp(name, kSets[1]) == 0) {
    *ranks = std::make_shared<const Ranks>(std::vector<int>{canele_rank(engine())}, session.send_buffer());
  } else {
    return fail(MPI_ERR_ARG, "there is no set of processes \"%s\"; expected: %s or %s", name, kSets[0], kSets[1]);
  }
  return MPI_SUCCESS;
}

}  // namespace canele::mpi
