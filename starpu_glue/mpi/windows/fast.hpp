// SPDX-License-Identifier: BSD-3-Clause
//
// The fast path of one-sided operations, inline: on memory that this process has mapped, and puts and gets that the
// engine is given as they are. Any thread.
//
// As in fast_path.hpp, nothing here reports errors. Any other case ends the fast path before it has had any effect, and
// the call takes the slow path from its beginning.
//
// The common case: MPI runs and no profile is wanted. The window is live, and its epoch has used the target before.
// Both sides name the same number of elements of one dense type, and the data lies within the target's part.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "starpu_glue/mpi/core/fast_calls.hpp"
#include "starpu_glue/mpi/core/state.hpp"
#include "starpu_glue/mpi/datatypes/type.hpp"
#include "starpu_glue/mpi/windows/direct.hpp"
#include "starpu_glue/mpi/windows/sync.hpp"
#include "starpu_glue/mpi/windows/window.hpp"

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
  /// Finds the data in the target's part. Returns false if not all of it is there.
  bool has_data(MPI_Datatype type, MPI_Count count, MPI_Aint displacement) {
    type_ = types_pool.find(type);
    if (type_ == nullptr || !type_->dense || !is_direct_count(count)) return false;
    const WindowCard& card = target_->card;
    length_ = type_->size * static_cast<std::size_t>(count);
    std::int64_t begin = 0;
    if (__builtin_mul_overflow(displacement, card.unit, &begin) ||
        __builtin_add_overflow(begin, type_->single.first, &begin))
      return false;
    if (begin < 0 || length_ > card.size || static_cast<std::uint64_t>(begin) > card.size - length_) return false;
    offset_ = card.first + static_cast<std::uint64_t>(begin);
    return true;
  }
  bool is_mapped() const { return target_->address != nullptr; }
  /// Returns whether the target has no operation in the engine, which an atomic operation must not overtake.
  bool has_nothing_pending() const { return !target_->pending.any(); }
  /// Flushes the target if there is nothing to wait for. Else returns false, with no effect. The epoch is one of locks.
  bool flush() const {
    const Epoch epoch = window_->epoch.load(std::memory_order_relaxed);
    if (epoch != Epoch::lock && epoch != Epoch::lock_all) return false;
    return has_nothing_pending() || flush_posted(*window_, target_->pending);
  }

  const Window& window() const { return *window_; }
  const Type& type() const { return *type_; }
  /// Returns whether the element is a word of 4 or 8 bytes, in mapped memory, where atomic operations can be.
  bool is_word() const {
    return type_->predefined && (length_ == sizeof(std::uint32_t) || length_ == sizeof(std::uint64_t)) &&
           reinterpret_cast<std::uintptr_t>(there()) % length_ == 0;
  }
  /// Applies an atomic operation to the word. `result` gets what it was before.
  void apply(canele_atomic_operation operation, std::uint64_t operand, std::uint64_t compare, void* result) const {
    const std::uint64_t before = apply_directly(there(), operation, length_, operand, compare);
    std::memcpy(result, &before, length_);
  }
  /// Both copy the data, or post the operation. They return false, with no effect, if the call has to take the slow
  /// path.
  bool put(const void* origin) const {
    if (!is_mapped()) return post<canele_put>(origin);
    write_target(there(), first_byte(origin), length_);
    return true;
  }
  bool get(void* origin) const {
    if (!is_mapped()) return post<canele_get>(origin);
    read_target(first_byte(origin), there(), length_);
    return true;
  }

 private:
  /// Posts a put or get without a request: a flush ends it.
  template <auto operation>
  bool post(const void* origin) const {
    PendingOperations& pending = target_->pending;
    if (length_ == 0 || target_->memory == nullptr || pending.count() >= kMostPending) return false;
    const canele_data_t data = canele_data_contiguous(first_byte(origin), length_);
    const canele_access_options_t options = access_options(*window_);
    if (operation(target_->memory, offset_, &data, &options, nullptr) != CANELE_OK) return false;
    pending.note_posted();
    return true;
  }
  /// Does what flush() does if operations were posted: the posting threads may have made all of them. Out of line,
  /// because it needs registers that a flush of mapped memory does not.
  [[gnu::noinline]] static bool flush_posted(const Window& window, PendingOperations& pending) {
    if (window.has_kept.load(std::memory_order_acquire)) return false;  // pairs with keep(): it is to be freed
    const std::uint64_t posted = pending.posted();
    if (canele_lane_try_flush(window.lane) != 1) return false;
    pending.note_over(posted);
    return true;
  }
  char* there() const { return target_->address + offset_; }
  char* first_byte(const void* memory) const {
    return static_cast<char*>(const_cast<void*>(memory)) + type_->single.first;
  }

  const Window* window_ = nullptr;
  WindowTarget* target_ = nullptr;
  const Type* type_ = nullptr;
  std::uint64_t offset_ = 0;  ///< of the data, in the memory of the target's key
  std::size_t length_ = 0;
};

}  // namespace canele::mpi
