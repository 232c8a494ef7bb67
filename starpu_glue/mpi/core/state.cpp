// SPDX-License-Identifier: BSD-3-Clause
//
// The phase of MPI in this process, its engine, and the threads that use it.
#include "starpu_glue/mpi/core/state.hpp"

#include <pthread.h>

#include <atomic>

#include "starpu_glue/mpi/core/error.hpp"

namespace canele::mpi {

constinit thread_local int CallbackScope::depth = 0;
constinit bool in_child = false;

namespace {

constinit std::atomic<Phase> current{Phase::before};
constinit std::atomic<canele_engine_t*> running{nullptr};
constinit std::atomic<int> users{0};  // number of EngineUse objects
constinit std::atomic<pthread_t> main_thread{};
constinit std::atomic<int> level{MPI_THREAD_SINGLE};

}  // namespace

int reject_in_child() {
  return fail(MPI_ERR_OTHER,
              "this process is the child of a fork, and MPI belongs to its parent; expected: a new program, or a fork "
              "before MPI_Init");
}

Phase phase() { return current.load(std::memory_order_acquire); }

canele_engine_t* engine() { return running.load(std::memory_order_acquire); }

bool is_main_thread() { return pthread_equal(main_thread.load(std::memory_order_acquire), pthread_self()) != 0; }

int thread_level() { return level.load(std::memory_order_relaxed); }

bool change_phase(Phase* expected, Phase next) { return current.compare_exchange_strong(*expected, next); }

void set_phase(Phase next) {
  current.store(next, std::memory_order_release);
}  // pairs with the acquire load in phase()

void set_main_thread(int asked_level) {
  level.store(asked_level, std::memory_order_relaxed);
  main_thread.store(pthread_self(), std::memory_order_release);  // pairs with the acquire load in is_main_thread
}

void publish_engine(canele_engine_t* made) {
  running.store(made, std::memory_order_release);  // pairs with the acquire load in engine()
}

canele_engine_t* take_engine_back() {
  // seq_cst, as in EngineUse: either this thread sees the user, or the user sees no engine.
  canele_engine_t* last = running.exchange(nullptr, std::memory_order_seq_cst);
  for (int inside = users.load(std::memory_order_seq_cst); inside != 0; inside = users.load()) users.wait(inside);
  return last;
}

EngineUse::EngineUse() {
  users.fetch_add(1, std::memory_order_seq_cst);
  engine_ = running.load(std::memory_order_seq_cst);
}

EngineUse::~EngineUse() {
  users.fetch_sub(1, std::memory_order_seq_cst);
  if (running.load(std::memory_order_seq_cst) == nullptr) users.notify_all();  // take_engine_back() may be waiting
}

int may_block() {
  if (!CallbackScope::here()) return MPI_SUCCESS;
  return fail(MPI_ERR_OTHER, "a call that blocks was made inside a completion callback, where it could never end");
}

}  // namespace canele::mpi
