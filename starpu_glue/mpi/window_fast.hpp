// SPDX-License-Identifier: BSD-3-Clause
//
// The fast path of one-sided operations: memory that this process has mapped, inline, and nothing else. Any thread.
//
// As in fast_path.hpp, nothing here reports errors. Any other case ends the fast path before it has had any effect, and
// the call takes the slow path from its beginning.
//
// The common case: MPI runs and no profile is wanted. The window is live, and its epoch has used the target before. The
// memory of the target is mapped here. Both sides name the same number of elements of one dense type, and the data lies
// within the target's part.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "starpu_glue/mpi/state.hpp"
#include "starpu_glue/mpi/type.hpp"
#include "starpu_glue/mpi/window.hpp"
#include "starpu_glue/mpi/window_direct.hpp"

namespace canele::mpi {

/// An operation on the fast path: collects what its call names, step by step.
class FastAccess {
 public:
  /// Returns false if the target does not suit the fast path.
  bool has_target(MPI_Win handle, int rank) {
    if (fast_world() == nullptr) return false;
    const std::atomic<Window*>* slot = windows_pool.find(handle);
    window_ = slot != nullptr ? slot->load(std::memory_order_acquire) : nullptr;  // pairs with create_window
    if (window_ == nullptr || !window_->comm->has_rank(rank)) return false;
    target_ = &window_->targets[static_cast<std::size_t>(rank)];
    return target_->ready.load(std::memory_order_acquire);  // pairs with make_ready
  }
  /// Finds the data in the target's part. Returns false if it is not mapped, or not all of it is there.
  bool has_data(MPI_Datatype type, int count, MPI_Aint displacement) {
    type_ = types_pool.find(type);
    if (target_->address == nullptr || type_ == nullptr || !type_->dense || count < 0) return false;
    const WindowCard& card = target_->card;
    length_ = type_->size * static_cast<std::size_t>(count);
    std::int64_t begin = 0;
    if (__builtin_mul_overflow(displacement, card.unit, &begin) ||
        __builtin_add_overflow(begin, type_->single.first, &begin))
      return false;
    if (begin < 0 || length_ > card.size || static_cast<std::uint64_t>(begin) > card.size - length_) return false;
    there_ = target_->address + card.first + begin;
    return true;
  }
  /// Returns whether the target has no operation in the engine, which an atomic operation must not overtake.
  bool has_nothing_pending() const { return !target_->pending.any(); }
  /// Returns whether a flush of the target has nothing to wait for. The epoch is one of locks.
  bool is_flushed() const {
    const Epoch epoch = window_->epoch.load(std::memory_order_relaxed);
    return (epoch == Epoch::lock || epoch == Epoch::lock_all) && has_nothing_pending();
  }

  const Window& window() const { return *window_; }
  const Type& type() const { return *type_; }
  /// Returns whether the element is a word of 4 or 8 bytes at an address that atomic operations can take.
  bool is_word() const {
    return type_->predefined && (length_ == sizeof(std::uint32_t) || length_ == sizeof(std::uint64_t)) &&
           reinterpret_cast<std::uintptr_t>(there_) % length_ == 0;
  }
  /// Applies an atomic operation to the word. `result` gets what it was before.
  void apply(canele_atomic_operation operation, std::uint64_t operand, std::uint64_t compare, void* result) const {
    const std::uint64_t before = apply_directly(there_, operation, length_, operand, compare);
    std::memcpy(result, &before, length_);
  }
  void put(const void* origin) const { write_target(there_, first_byte(origin), length_); }
  void get(void* origin) const { read_target(first_byte(origin), there_, length_); }

 private:
  char* first_byte(const void* memory) const {
    return static_cast<char*>(const_cast<void*>(memory)) + type_->single.first;
  }

  const Window* window_ = nullptr;
  WindowTarget* target_ = nullptr;
  const Type* type_ = nullptr;
  char* there_ = nullptr;
  std::size_t length_ = 0;
};

}  // namespace canele::mpi
