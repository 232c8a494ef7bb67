// SPDX-License-Identifier: BSD-3-Clause
//
// MessagePool: memory of messages that are kept, which a burst takes from the system and gives back after it.
//
// Who: protocol/, under the engine's lock.
// Threads: under the engine's lock.
// Surprise: small messages lie in slabs of 2 MiB, aligned, so that a block leads to its slab by its address. All
//     but the first want huge pages: a receive that takes one message of a million misses the cache, but not the page
//     table too. Under AddressSanitizer each message is malloc's, so that a late use of one is seen.
//
//   open_ ─▶ slab ⇄ slab (with room)        slab: │ head │ block │ block │ … fresh ─▶ never used │
//   all_  ─▶ slab ⇄ slab ⇄ slab (every one)
//   an empty one goes back to the system, but for one: the spare
//
// Rejected: malloc (it looks at a freed block's neighbours, two more lines; and a heap that has grown stays).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "comm/core/message.hpp"

namespace canele::comm {

#if defined(__SANITIZE_ADDRESS__)
#define CANELE_MESSAGES_IN_SLABS false
#elif defined(__has_feature)
#define CANELE_MESSAGES_IN_SLABS !__has_feature(address_sanitizer)
#else
#define CANELE_MESSAGES_IN_SLABS true
#endif

class MessagePool {
 public:
  static constexpr std::size_t block_size = 240, slab_size = 2 << 20;
  static constexpr bool in_slabs = CANELE_MESSAGES_IN_SLABS;
#undef CANELE_MESSAGES_IN_SLABS

  MessagePool() = default;
  /// Ends small messages that are still there: those of late receives that never got a buffer.
  ~MessagePool();
  MessagePool(const MessagePool&) = delete;
  MessagePool& operator=(const MessagePool&) = delete;

  /// A message with room for `extra` bytes behind it. nullptr if there is no memory.
  Message* make(std::size_t extra) {
    const std::size_t size = sizeof(Message) + extra;
    void* block = is_small(size) ? take() : std::malloc(size);
    return block != nullptr ? new (block) Message : nullptr;
  }
  void release(Message& message) {
    const bool small = is_small(message.size());
    message.~Message();
    if (small) {
      give_back(&message);
    } else {
      std::free(&message);
    }
  }

  /// Slabs that are held, empty or not.
  std::size_t slabs() const { return slabs_; }

 private:
  struct Free {
    Free* next;
  };
  struct alignas(64) Slab {
    Slab* prev;
    Slab* next;
    Free* free;           ///< blocks that were used once
    std::uint32_t fresh;  ///< from where on no block was ever used: those pages are not touched yet
    std::uint32_t used;
    Slab* all_prev;
    Slab* all_next;
  };
  static constexpr std::uint32_t blocks = (slab_size - sizeof(Slab)) / block_size;

  static bool is_small(std::size_t size) { return in_slabs && size <= block_size; }
  static Slab* slab_of(void* block) {
    return reinterpret_cast<Slab*>(reinterpret_cast<std::uintptr_t>(block) & ~std::uintptr_t{slab_size - 1});
  }
  static std::byte* block_of(Slab* slab, std::uint32_t index) {
    return reinterpret_cast<std::byte*>(slab + 1) + std::size_t{index} * block_size;
  }
  void* take() {
    Slab* slab = open_;
    if (slab == nullptr) [[unlikely]] {
      slab = add_slab();
      if (slab == nullptr) return nullptr;
    }
    void* block = slab->free;
    if (block != nullptr) {
      slab->free = slab->free->next;
    } else {
      block = block_of(slab, slab->fresh++);
    }
    if (slab->used++ == 0 && slab == spare_) [[unlikely]]
      spare_ = nullptr;
    if (slab->used == blocks) [[unlikely]]
      close(*slab);
    return block;
  }
  void give_back(void* memory) {
    Slab* slab = slab_of(memory);
    slab->free = new (memory) Free{slab->free};
    if (slab->used-- == blocks) [[unlikely]]
      open(*slab);
    if (slab->used == 0) [[unlikely]]
      spare_ != nullptr ? drop(*slab) : void(spare_ = slab);
  }

  Slab* add_slab();
  void drop(Slab& slab);
  void open(Slab& slab);
  void close(Slab& slab);

  Slab* all_ = nullptr;
  Slab* open_ = nullptr;
  Slab* spare_ = nullptr;  ///< the empty one, if there is one; in the list
  std::size_t slabs_ = 0;
};

}  // namespace canele::comm
