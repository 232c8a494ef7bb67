// SPDX-License-Identifier: BSD-3-Clause
//
// Sessions: objects through which a program without MPI_Init gets groups of ranks.
//
// Any thread. A session holds the engine (environment/start.hpp), an error handler, and hints. All sessions and
// MPI_COMM_WORLD share one engine. What is made of the groups of one session may therefore be used beside that of
// another one.
#pragma once

#include <mpi.h>

#include <atomic>

#include "starpu_glue/mpi/communicators/group.hpp"
#include "starpu_glue/mpi/core/error_handlers.hpp"
#include "starpu_glue/mpi/core/handles.hpp"
#include "starpu_glue/mpi/infos/info.hpp"

namespace canele::mpi {

class Session {
 public:
  Session(InfoPairs info, MPI_Errhandler handler) : info_(std::move(info)) {
    error_handler_.set(ObjectKind::session, handler);
  }

  ErrorHandlerUse& error_handler() { return error_handler_; }
  ErrorTarget error_target() const { return {error_handler_.get(), handle_}; }
  void set_handle(MPI_Session handle) { handle_ = handle; }
  const InfoPairs& info() const { return info_; }
  /// Memory for buffered sends of communicators made of the session's groups.
  const SessionBuffer& send_buffer() const { return send_buffer_; }

 private:
  ErrorHandlerUse error_handler_;
  MPI_Session handle_ = MPI_SESSION_NULL;
  InfoPairs info_;  ///< what MPI_Session_get_info says
  SessionBuffer send_buffer_ = std::make_shared<SendBufferPlace>();
};

constexpr std::uint32_t kSessionsReserved = 0x121;  ///< up to MPI_SESSION_NULL
using SessionPool = HandlePool<std::atomic<Session*>, MPI_Session, Kind::session, kSessionsReserved, 64>;
extern constinit SessionPool sessions_pool;

/// Returns the session of a live handle, else nullptr.
inline Session* find_session(MPI_Session handle) {
  std::atomic<Session*>* slot = sessions_pool.find(handle);
  return slot == nullptr ? nullptr : slot->load(std::memory_order_acquire);
}
/// These return MPI codes.
int get_session(MPI_Session handle, Session** found);
int new_session(InfoPairs info, MPI_Errhandler handler, MPI_Session* handle);
void free_session(MPI_Session handle);

/// The sets of processes that each session knows: their number, the name of each, and its ranks. An unknown name is
/// MPI_ERR_ARG.
int process_sets();
const char* process_set(int index);
int ranks_of_process_set(const char* name, const Session& session, RanksPointer* ranks);

}  // namespace canele::mpi
