// SPDX-License-Identifier: BSD-3-Clause
//
// The objects behind the opaque structures of the nmad headers. Used by starpu_glue/nmad only, from any thread.
//
// They are placed into the caller's calloc'ed memory. They may thus need 16-byte alignment at most, and all bytes zero
// must be a valid initial state.
#pragma once

#include <canele/canele.h>
#include <nm_mcast_interface.h>
#include <nm_sendrecv_interface.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "starpu_glue/mpi/communicators/communicator.hpp"
#include "starpu_glue/mpi/datatypes/transfer.hpp"

namespace canele::nmad {

/// nm_data_s: a copy of everything needed, so that StarPU may build it on its stack.
struct Data {
  enum class Kind : std::uint32_t { none = 0, payload, pieces };
  Kind kind;
  int piece_count;
  const struct iovec* pieces;
  mpi::Payload payload;  ///< contiguous memory, or elements of a datatype

  static Data& of(nm_data_s* data) { return *reinterpret_cast<Data*>(data); }
  static const Data& of(const nm_data_s* data) { return *reinterpret_cast<const Data*>(data); }
  /// Describes the data for the engine; the result refers to *this.
  canele_data_t describe() const;
  std::size_t length() const;
};
static_assert(sizeof(Data) <= sizeof(nm_data_s) && alignof(Data) <= 16);

/// A task that waits in a SerialExecutor.
struct SerialTask {
  void (*run)(SerialTask&);  ///< calls StarPU; the task may no longer exist afterwards
  SerialTask* next;          ///< in the executor's list
};

/// nm_sr_request_t.
struct Request : SerialTask {
  canele_request_t engine;
  Data data;
  nm_session_s* session;
  nm_sr_event_notifier_t notifier;
  void* reference;
  std::size_t header;
  std::int32_t priority;
  std::uint16_t mask;  ///< events that the notifier wants
  bool send;
  bool posted;
  bool has_data;

  static Request& of(nm_sr_request_t* request) { return *reinterpret_cast<Request*>(request); }
};
static_assert(sizeof(Request) <= sizeof(nm_sr_request_t) && alignof(Request) <= 16);

/// The task of a send: delivers its FINALIZED event.
void notify_finalized(SerialTask& task);

/// nm_mcast_t points to it.
struct Multicast : SerialTask {
  canele_request_t engine;
  nm_mcast_send_notifier_t notifier;
  void* reference;
  nm_session_s* session;
};

/// Delivers the FINALIZED events of the sends of one session one at a time, because StarPU counts them without an
/// atomic. Any thread may call it. The thread that finds it idle delivers; other threads append their task and return:
///
/// head_  idle (nullptr)
///        busy                      a thread delivers, no task waits
///        t3 -> t2 -> t1 -> busy    a thread delivers; t1 came first
///
/// A callback that submits a send which completes at once therefore does not nest: it finds "busy". Rejected: a mutex.
/// The callback of one send may wait for a lock that the poster of another send holds.
class SerialExecutor {
 public:
  void deliver(SerialTask& task);

 private:
  std::atomic<SerialTask*> head_{nullptr};
};

}  // namespace canele::nmad

/// nm_session_t: the third session of a communicator. Never freed: a thread may still be leaving the executor when
/// MPI_Finalize has ended.
struct nm_session_s {
  canele_session_t* session = nullptr;
  canele::mpi::Communicator* comm = nullptr;
  canele::nmad::SerialExecutor sends;
  nm_session_s* next = nullptr;  ///< list of all sessions, so that leak checkers see them
};

namespace canele::nmad {

/// Returns the session of a communicator, opening it if necessary. Any thread.
nm_session_s* session_of(mpi::Communicator& comm);

/// Ends the job if `error` is an error: StarPU does not check the result of the call.
void must(int error, const char* function);

/// Ends the job because the data to send has no memory: names the setting of StarPU that helps.
[[noreturn]] void without_memory(const canele_data_t& data, const char* function);
inline void must_have_memory(const canele_data_t& data, const char* function) {
  if (data.length != 0 && data.base == nullptr && data.segments == nullptr) without_memory(data, function);
}

/// A gate is the peer's rank in MPI_COMM_WORLD plus one, as a pointer. It needs no look-up, and it cannot dangle when a
/// communicator is freed.
inline nm_gate_t gate_of(int world_rank) {
  return reinterpret_cast<nm_gate_t>(static_cast<std::intptr_t>(world_rank) + 1);
}
inline int rank_of(nm_gate_t gate) { return static_cast<int>(reinterpret_cast<std::intptr_t>(gate) - 1); }

}  // namespace canele::nmad
