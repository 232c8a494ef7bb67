// SPDX-License-Identifier: BSD-3-Clause
//
// HandlePool: objects of one kind named by int handles; lookup is O(1), without lock, from any thread.
//
// Who: datatypes, requests, communicators, groups and operators of the MPI subset. Threads: every function, any thread.
// Surprise: slots are never freed nor moved: a stale handle finds a slot of another generation and is refused, and a
//      thread that still looks at a freed slot reads valid memory. Memory stays at the highest number alive at once.
//
//   handle   0 | kind (3 bits) | generation (4) | index (24)
//
//   chunks_  [0] -> slots 0..511       free_  tag | index+1 -> slot -> slot -> 0
//            [1] -> slots 512..1023    (the tag counts pops, so that a slot which left and came back is noticed)
//            [2] -> nullptr until needed
//
// A vector under a read-write lock was rejected: StarPU makes and frees one datatype per message, from all its threads.
// Chunks that double in size were rejected: the last one would be made in one long pause.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace canele::mpi {

enum class Kind : std::uint32_t { communicator = 1, group = 2, datatype = 3, op = 4, request = 5, error_handler = 6 };

constexpr std::uint32_t kIndexBits = 24;
constexpr std::uint32_t kIndexMask = (1u << kIndexBits) - 1;
constexpr std::uint32_t kGenerationMask = 0xf;

constexpr int make_handle(Kind kind, std::uint32_t index, std::uint32_t generation = 0) {
  return static_cast<int>(static_cast<std::uint32_t>(kind) << 28 | (generation & kGenerationMask) << kIndexBits |
                          index);
}
constexpr bool is_kind(int handle, Kind kind) {
  return static_cast<std::uint32_t>(handle) >> 28 == static_cast<std::uint32_t>(kind);
}
constexpr std::uint32_t handle_index(int handle) { return static_cast<std::uint32_t>(handle) & kIndexMask; }
constexpr std::uint32_t handle_generation(int handle) {
  return static_cast<std::uint32_t>(handle) >> kIndexBits & kGenerationMask;
}

/// T is default-constructed once, when its chunk is made, and then reused: the owner resets it.
/// The first `Reserved` indexes are never given out: they belong to the predefined handles of the kind.
template <class T, Kind kKind, std::uint32_t kReserved, std::uint32_t kChunks>
class HandlePool {
 public:
  constexpr HandlePool() = default;
  HandlePool(const HandlePool&) = delete;
  HandlePool& operator=(const HandlePool&) = delete;

  /// A free object and its handle; nullptr when memory or handles (512 * kChunks) run out.
  T* acquire(int* handle) noexcept {
    Slot* slot = pop();
    if (slot == nullptr) slot = fresh();
    if (slot == nullptr) return nullptr;
    const std::uint32_t state = slot->state.load(std::memory_order_relaxed) | kLive;
    *handle = make_handle(kKind, slot->index + kReserved, state >> 1);
    slot->state.store(state, std::memory_order_release);
    return &slot->object;
  }

  /// The object named by a live handle, else nullptr.
  T* find(int handle) noexcept {
    if (!is_kind(handle, kKind)) return nullptr;
    Slot* slot = slot_at(handle_index(handle) - kReserved);
    if (slot == nullptr) return nullptr;
    const std::uint32_t state = slot->state.load(std::memory_order_acquire);
    const bool same = (state & kLive) != 0 && (state >> 1 & kGenerationMask) == handle_generation(handle);
    return same ? &slot->object : nullptr;
  }

  /// Gives the object of a live handle back; the handle is stale from now on.
  void release(int handle) noexcept {
    Slot* slot = slot_at(handle_index(handle) - kReserved);
    const std::uint32_t state = slot->state.load(std::memory_order_relaxed);
    slot->state.store((state & ~kLive) + 2, std::memory_order_release);  // next generation, not live
    push(slot);
  }

 private:
  static constexpr std::uint32_t kLive = 1;
  static constexpr std::uint32_t kChunkBits = 9;
  static constexpr std::uint32_t kChunkSlots = 1u << kChunkBits;
  static_assert(kReserved < (1u << kIndexBits) && kChunks <= (1u << (kIndexBits - kChunkBits)));
  static constexpr std::uint32_t kLimit = kChunks * kChunkSlots - kReserved;

  struct Slot {
    std::atomic<std::uint32_t> state{0};  // generation << 1 | live
    std::atomic<std::uint32_t> next{0};   // free list: index + 1
    std::uint32_t index = 0;
    T object{};
  };

  Slot* slot_at(std::uint32_t index) noexcept {
    if (index >= kLimit) return nullptr;  // also where a predefined handle made the subtraction wrap
    Slot* slots = chunks_[index >> kChunkBits].load(std::memory_order_acquire);
    return slots == nullptr ? nullptr : slots + (index & (kChunkSlots - 1));
  }

  Slot* fresh() noexcept {
    std::uint32_t index = used_.load(std::memory_order_relaxed);
    do {
      if (index >= kLimit || !has_chunk(index >> kChunkBits)) return nullptr;
    } while (!used_.compare_exchange_weak(index, index + 1, std::memory_order_relaxed));
    return slot_at(index);
  }

  bool has_chunk(std::uint32_t chunk) noexcept {
    if (chunks_[chunk].load(std::memory_order_acquire) != nullptr) return true;
    Slot* made = new (std::nothrow) Slot[kChunkSlots];
    if (made == nullptr) return false;
    for (std::uint32_t i = 0; i < kChunkSlots; ++i) made[i].index = (chunk << kChunkBits) + i;
    Slot* expected = nullptr;
    if (!chunks_[chunk].compare_exchange_strong(expected, made, std::memory_order_acq_rel)) delete[] made;
    return true;
  }

  Slot* pop() noexcept {
    std::uint64_t head = free_.load(std::memory_order_acquire);
    for (;;) {
      const std::uint32_t index = static_cast<std::uint32_t>(head);
      if (index == 0) return nullptr;
      Slot* slot = slot_at(index - 1);
      const std::uint64_t tag = (head >> 32) + 1;
      const std::uint64_t next = tag << 32 | slot->next.load(std::memory_order_relaxed);
      if (free_.compare_exchange_weak(head, next, std::memory_order_acq_rel, std::memory_order_acquire)) return slot;
    }
  }

  void push(Slot* slot) noexcept {
    std::uint64_t head = free_.load(std::memory_order_relaxed);
    std::uint64_t mine;
    do {
      slot->next.store(static_cast<std::uint32_t>(head), std::memory_order_relaxed);
      mine = (head & ~std::uint64_t{0xffffffff}) | (slot->index + 1);
    } while (!free_.compare_exchange_weak(head, mine, std::memory_order_acq_rel, std::memory_order_relaxed));
  }

  std::atomic<Slot*> chunks_[kChunks]{};
  std::atomic<std::uint64_t> free_{0};
  std::atomic<std::uint32_t> used_{0};
};

}  // namespace canele::mpi
