// SPDX-License-Identifier: BSD-3-Clause
//
// HandlePool: objects of one kind named by handles. Look-up is O(1), without a lock, from any thread.
//
// Used for datatypes, requests, communicators, groups, operators, windows, infos and sessions of the MPI layer. Any
// thread may call any function. Slots are never freed nor moved. A stale handle finds a slot of another generation and
// is rejected, and a thread that still reads a freed slot reads valid memory. Memory stays at the highest number of
// objects alive at once.
//
//   word     0 | kind (4 bits) | generation (3) | index (24)     a handle that the pool makes
//            its number in the ABI, which is also its index      a predefined handle
//   handle   the word, widened to a pointer
//
//   chunks_  [0] -> slots 0..511       free_  tag | index -> slot -> slot -> 0
//            [1] -> slots 512..1023    (the tag counts pops, so that a slot which left and came back is noticed)
//            [2] -> nullptr until needed
//
//   slot     word: its handle while that is live, else the complement of the next one, which no handle of it equals
//
// Words are positive ints, and those that the pool makes are at least 2^27. The ABI reserves the handles below 2^12.
//
// Rejected: a vector under a read-write lock. StarPU makes and frees one datatype per message, from all its threads.
// Rejected: indexes that count from the first predefined handle of the kind on. Each look-up would have a subtraction
// more, to save a few empty slots.
// Rejected: chunks that double in size. The last one would be made in one long pause.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

namespace canele::mpi {

enum class Kind : std::uint32_t {
  window = 1,
  communicator = 2,
  info = 3,
  group = 4,
  keyval = 5,
  datatype = 6,
  message = 7,
  op = 8,
  session = 9,
  request = 10,
  error_handler = 12
};

constexpr std::uint32_t kIndexBits = 24;
constexpr std::uint32_t kIndexMask = (1u << kIndexBits) - 1;
constexpr std::uint32_t kGenerationMask = 0x7;
constexpr std::uint32_t kKindShift = 27;

constexpr int make_word(Kind kind, std::uint32_t index, std::uint32_t generation = 0) {
  return static_cast<int>(static_cast<std::uint32_t>(kind) << kKindShift |
                          (generation & kGenerationMask) << kIndexBits | index);
}
constexpr std::uint32_t word_index(int word) { return static_cast<std::uint32_t>(word) & kIndexMask; }

/// Returns the next word of the slot of `word`: the next generation.
constexpr int next_word(int word) {
  constexpr std::uint32_t mask = kGenerationMask << kIndexBits, one = 1u << kIndexBits;
  const auto bits = static_cast<std::uint32_t>(word);
  return static_cast<int>((bits & ~mask) | ((bits + one) & mask));
}

/// Returns a handle of mpi.h, or a key of attributes, as a number.
template <class Handle>
std::size_t handle_bits(Handle handle) {
  if constexpr (std::is_pointer_v<Handle>) {
    return reinterpret_cast<std::uintptr_t>(handle);
  } else {
    return static_cast<std::uint32_t>(handle);
  }
}

/// Returns the integer of a handle: the same for all kinds of handles, in C and in Fortran.
template <class Handle>
int to_integer(Handle handle) {
  return static_cast<int>(handle_bits(handle));
}
/// Returns the handle of a word.
template <class Handle>
Handle to_handle(int word) {
  if constexpr (std::is_pointer_v<Handle>) {
    return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(static_cast<std::uint32_t>(word)));
  } else {
    return word;
  }
}

/// T is default-constructed once, when its chunk is made, and then reused: the owner resets it. The first `Reserved`
/// indexes are never given out. They belong to the predefined handles of the kind, if these have objects. A chunk
/// below all others is made only for such a handle.
template <class T, class Handle, Kind kKind, std::uint32_t kReserved, std::uint32_t kChunks>
class HandlePool {
 public:
  constexpr HandlePool() = default;
  HandlePool(const HandlePool&) = delete;
  HandlePool& operator=(const HandlePool&) = delete;

  /// Returns a free object and its handle; nullptr when memory or handles (512 * kChunks) run out.
  T* acquire(Handle* handle) noexcept {
    T* object = take();
    if (object != nullptr) *handle = open(*object);
    return object;
  }

  /// Returns the object named by a live handle, else nullptr.
  [[gnu::always_inline]] T* find(Handle handle) noexcept {
    const std::size_t bits = handle_bits(handle);
    Slot* slot = slot_at(static_cast<std::uint32_t>(bits) & kIndexMask);
    if (slot == nullptr) return nullptr;
    const int word = slot->word.load(std::memory_order_acquire);       // pairs with open
    return static_cast<std::uint32_t>(word) == bits ? slot : nullptr;  // all of them: no handle has an upper half
  }

  /// Returns the object of a live handle to the pool; the handle becomes stale.
  void release(Handle handle) noexcept {
    T& object = *slot_at(static_cast<std::uint32_t>(handle_bits(handle)) & kIndexMask);
    close(object);
    give(object);
  }

  /// Takes an object that no handle names. With give(), open() and close(), for owners that keep free objects
  /// themselves.
  T* take() noexcept {
    std::uint32_t index = 0;
    return pop(1, &index) != 0 ? slot_at(index) : fresh();
  }
  void give(T& object) noexcept {
    Slot& slot = static_cast<Slot&>(object);
    push(index_of(slot), slot);
  }
  /// Takes up to `most` returned objects with one atomic operation, calls keep(object) for each, and returns how many.
  /// give_some() returns `count` objects, each obtained from next().
  template <class Keep>
  int take_some(int most, Keep keep) noexcept {
    std::uint32_t first = 0;
    const int count = pop(most, &first);
    for (int i = 0; i < count; ++i) {
      Slot* slot = slot_at(first);
      first = slot->next_index.load(std::memory_order_relaxed);
      keep(static_cast<T&>(*slot));
    }
    return count;
  }
  template <class Next>
  void give_some(int count, Next next) noexcept {
    Slot& last = static_cast<Slot&>(next());
    std::uint32_t first = index_of(last);
    for (int i = 1; i < count; ++i) {
      Slot& slot = static_cast<Slot&>(next());
      slot.next_index.store(first, std::memory_order_relaxed);
      first = index_of(slot);
    }
    push(first, last);
  }

  /// Makes a handle for the object and returns it. The handle is live from open() to close().
  static Handle open(T& object) noexcept {
    std::atomic<int>& word = word_of(object);
    const int live = ~word.load(std::memory_order_relaxed);
    word.store(live, std::memory_order_release);  // pairs with the acquire load in find
    return to_handle<Handle>(live);
  }
  static void close(T& object) noexcept {
    std::atomic<int>& word = word_of(object);
    word.store(~next_word(word.load(std::memory_order_relaxed)), std::memory_order_release);
  }
  /// Returns the live handle of the object.
  static Handle handle_of(T& object) noexcept {
    return to_handle<Handle>(word_of(object).load(std::memory_order_relaxed));
  }

  /// Returns the object of a predefined handle, for the owner to open() and close(); nullptr if there is no memory.
  T* reserved(Handle handle) noexcept {
    const auto index = static_cast<std::uint32_t>(handle_bits(handle));
    return has_chunk(index >> kChunkBits) ? slot_at(index) : nullptr;
  }

  /// Calls visit(object) for each object with a live handle. Other threads may add and remove objects meanwhile.
  template <class Visit>
  void each_live(Visit visit) noexcept {
    const std::uint32_t end = used_.load(std::memory_order_acquire);
    for (std::uint32_t index = kReserved; index < end; ++index) {
      Slot* slot = slot_at(index);
      if (slot->word.load(std::memory_order_acquire) > 0) visit(static_cast<T&>(*slot));
    }
  }

  /// Calls visit(object) for each object that was ever made.
  template <class Visit>
  void each(Visit visit) noexcept {
    const std::uint32_t end = used_.load(std::memory_order_acquire);
    for (std::uint32_t index = kReserved; index < end; ++index) visit(static_cast<T&>(*slot_at(index)));
  }

  /// Returns the highest number of objects in use at once, including free ones that owners keep.
  std::uint32_t used() const noexcept { return used_.load(std::memory_order_relaxed) - kReserved; }

 private:
  static constexpr std::uint32_t kChunkBits = 9;
  static constexpr std::uint32_t kChunkSlots = 1u << kChunkBits;
  static constexpr std::uint32_t kAllChunks = 1u << (kIndexBits - kChunkBits);
  static constexpr std::uint32_t kLimit = kChunks * kChunkSlots;
  static_assert(kReserved > 0 && kReserved < kLimit && kChunks <= kAllChunks);

  struct Head {
    std::atomic<int> word{0};
    std::atomic<std::uint32_t> next_index{0};  // index of the next free slot
  };
  static constexpr std::size_t kLine = 64;
  static constexpr std::size_t kAlignment = sizeof(Head) + sizeof(T) > kLine ? kLine : alignof(std::max_align_t);
  /// The head lies in the cache line in which the object begins.
  struct alignas(kAlignment) Slot : Head, T {};

  static std::atomic<int>& word_of(T& object) noexcept { return static_cast<Slot&>(object).word; }

  Slot* slot_at(std::uint32_t index) noexcept {
    if (kChunks < kAllChunks && index >= kLimit) return nullptr;
    Slot* slots = chunks_[index >> kChunkBits].load(std::memory_order_acquire);
    return slots == nullptr ? nullptr : slots + (index & (kChunkSlots - 1));
  }

  Slot* fresh() noexcept {
    std::uint32_t index = used_.load(std::memory_order_relaxed);
    do {
      if (index >= kLimit || !has_chunk(index >> kChunkBits)) return nullptr;
    } while (!used_.compare_exchange_weak(index, index + 1, std::memory_order_acq_rel));
    return slot_at(index);
  }

  bool has_chunk(std::uint32_t chunk) noexcept {
    if (chunks_[chunk].load(std::memory_order_acquire) != nullptr) return true;
    Slot* made = new (std::nothrow) Slot[kChunkSlots];
    if (made == nullptr) return false;
    for (std::uint32_t i = 0; i < kChunkSlots; ++i) {
      const std::uint32_t index = (chunk << kChunkBits) + i;
      const int first = index < kReserved ? static_cast<int>(index) : make_word(kKind, index);
      made[i].word.store(~first, std::memory_order_relaxed);
    }
    Slot* expected = nullptr;
    // Release: pairs with the acquire load in slot_at.
    if (!chunks_[chunk].compare_exchange_strong(expected, made, std::memory_order_acq_rel)) delete[] made;
    return true;
  }

  /// Returns the index of a slot that no handle names.
  static std::uint32_t index_of(const Slot& slot) noexcept {
    return word_index(~slot.word.load(std::memory_order_relaxed));
  }

  /// Takes up to `most` slots off the free list and returns how many. The slots stay linked.
  int pop(int most, std::uint32_t* first) noexcept {
    std::uint64_t head = free_.load(std::memory_order_acquire);
    for (;;) {
      *first = static_cast<std::uint32_t>(head);
      std::uint32_t rest = *first;
      int count = 0;
      for (; count < most && rest != 0; ++count) {  // other threads may take them meanwhile: then the tag has changed
        rest = slot_at(rest)->next_index.load(std::memory_order_relaxed);
      }
      if (count == 0) return 0;
      const std::uint64_t next = ((head >> 32) + 1) << 32 | rest;
      if (free_.compare_exchange_weak(head, next, std::memory_order_acq_rel, std::memory_order_acquire)) return count;
    }
  }

  /// Puts slots, linked from `first` to `last`, onto the free list.
  void push(std::uint32_t first, Slot& last) noexcept {
    std::uint64_t head = free_.load(std::memory_order_relaxed);
    std::uint64_t mine;
    do {
      last.next_index.store(static_cast<std::uint32_t>(head), std::memory_order_relaxed);
      mine = (head & ~std::uint64_t{0xffffffff}) | first;
    } while (!free_.compare_exchange_weak(head, mine, std::memory_order_acq_rel, std::memory_order_relaxed));
  }

  std::atomic<Slot*> chunks_[kChunks]{};
  std::atomic<std::uint64_t> free_{0};
  std::atomic<std::uint32_t> used_{kReserved};
};

}  // namespace canele::mpi
