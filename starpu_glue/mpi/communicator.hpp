// SPDX-License-Identifier: BSD-3-Clause
//
// Communicators: ranks, and the engine sessions that keep their messages apart.
//
// Who: every MPI call with a communicator, nm_mpi_nmad_dest. Threads: any.
// Surprise: a communicator has three sessions of its own, because they need different order and may use any tag:
//
//   label + ".p"  point to point   CANELE_ORDER_ACROSS_TAGS  tag = the user's
//   label + ".c"  collectives      CANELE_ORDER_PER_TAG      tag = number of the collective call
//   label + ".n"  StarPU (nmad)    CANELE_ORDER_PER_TAG      tag = StarPU's 64 bits; opened at first use
//
// The label is the same on every member without a server: "mpi.world", or "mpi.<leader>.<number>" with the leader's
// world rank and its own running number, agreed by messages inside the parent. One session with the kind in the tag was
// rejected: StarPU uses all 64 bits, and order across tags would void its priorities.
#pragma once

#include <canele/canele.h>
#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "starpu_glue/mpi/group.hpp"

struct nm_session_s;

namespace canele::mpi {

class Communicator {
 public:
  /// Opens the sessions. MPI code; *made has one reference, for its handle.
  static int create(canele_engine_t* engine, RanksPointer ranks, int rank, std::string label, Communicator** made);

  int rank() const { return rank_; }
  int size() const { return ranks_->size(); }
  const RanksPointer& ranks() const { return ranks_; }
  int world_rank(int rank) const { return ranks_->world_rank(rank); }

  MPI_Comm handle() const { return handle_; }
  void set_handle(MPI_Comm handle) { handle_ = handle; }

  canele_session_t* messages() const { return messages_; }
  canele_session_t* collectives() const { return collectives_; }
  /// A tag for the next collective call; the same on every member, as they make these calls in the same order.
  std::uint64_t next_collective() { return calls_.fetch_add(1, std::memory_order_relaxed); }

  MPI_Errhandler error_handler() const { return error_handler_.load(std::memory_order_relaxed); }
  void set_error_handler(MPI_Errhandler handler) { error_handler_.store(handler, std::memory_order_relaxed); }

  void name(char* text, int* length) const;
  void set_name(const char* text);

  const std::string& label() const { return label_; }
  /// Used by starpu_glue/nmad only: see session.cpp there.
  std::atomic<nm_session_s*>& nmad() { return nmad_; }

  void add_reference() { references_.fetch_add(1, std::memory_order_relaxed); }
  /// The last one closes the sessions.
  void drop_reference();

 private:
  Communicator(RanksPointer ranks, int rank, std::string label);
  ~Communicator() = default;
  friend void forget_communicators();

  std::atomic<int> references_{1};
  MPI_Comm handle_ = MPI_COMM_NULL;
  int rank_;
  RanksPointer ranks_;
  std::string label_;
  canele_session_t* messages_ = nullptr;
  canele_session_t* collectives_ = nullptr;
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<nm_session_s*> nmad_{nullptr};
  std::atomic<MPI_Errhandler> error_handler_{MPI_ERRORS_ARE_FATAL};
  std::string name_;              // guarded by the lock in communicator.cpp
  Communicator* next_ = nullptr;  // list of all, for forget_communicators
  Communicator* previous_ = nullptr;
};

/// MPI_COMM_WORLD while MPI runs, else nullptr.
Communicator* world();

/// The communicator of a live handle, else nullptr.
Communicator* find_communicator(MPI_Comm handle);

/// As find_communicator, with an MPI code and detail.
int get_communicator(MPI_Comm handle, Communicator** found);

/// Makes MPI_COMM_WORLD and MPI_COMM_SELF. MPI code.
int open_world(canele_engine_t* engine);
/// Frees every communicator; the engine, and the sessions with it, are gone.
void forget_communicators();

/// MPI_Comm_dup, _split and _create_group. They communicate within the parent. MPI code.
int duplicate(Communicator& parent, MPI_Comm* made);
int split(Communicator& parent, int color, int key, MPI_Comm* made);
int create_from_group(Communicator& parent, const RanksPointer& group, int tag, MPI_Comm* made);
int free_communicator(MPI_Comm* handle);

}  // namespace canele::mpi
