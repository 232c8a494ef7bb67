// SPDX-License-Identifier: BSD-3-Clause
//
// MessagePool: allocates stored messages. A burst of messages takes memory from the system, which goes back after the
// burst.
//
// Used by protocol/. Called by the thread that holds the engine's lock.
//
// Small messages lie in aligned slabs of 2 MiB, so that the address of a block leads to its slab. A slab has blocks of
// one size; there are few sizes. All but the first slab of a size use huge pages. A receive that takes one message of a
// million then misses the cache, but not the page table, too. Under AddressSanitizer each message comes from malloc, so
// that a use after free is found.
//
//   kind of block: open ─▶ slab ⇄ slab (with room)      slab: │ head │ block │ block │ … fresh ─▶ never used │
//   all_ ─▶ slab ⇄ slab ⇄ slab (every one)
//   an empty one goes back to the system, but for one of each kind: the spare
//
// Rejected: malloc (it reads a freed block's neighbours, which are two more cache lines; and a heap that has grown
// stays).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "comm/matching/pages.hpp"
#include "comm/state/message.hpp"

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
  static constexpr std::size_t slab_size = huge_page;
  /// Block sizes in bytes. The first one exactly fits a message of 8 bytes.
  static constexpr std::array<std::uint32_t, 6> block_sizes = {72, 96, 128, 192, 256, 320};
  static constexpr bool in_slabs = CANELE_MESSAGES_IN_SLABS;
#undef CANELE_MESSAGES_IN_SLABS

  MessagePool();
  /// Frees all slabs. Small messages may still be in them: those of unbound receives that never got a buffer.
  ~MessagePool();
  MessagePool(const MessagePool&) = delete;
  MessagePool& operator=(const MessagePool&) = delete;

  /// Makes a message with room for `extra` bytes behind it. Returns nullptr if there is no memory.
  Message* make(std::size_t extra) {
    const std::size_t size = sizeof(Message) + extra;
    void* block = is_small(size) ? take(kinds_[kind_for(size)]) : std::malloc(size);
    return block != nullptr ? new (block) Message : nullptr;
  }
  void release(Message& message) { release(message, message.size()); }

  /// Frees a message of `size` bytes.
  void release(Message& message, std::size_t size) {
    message.~Message();
    if (is_small(size)) [[likely]] {
      give_back(&message);
    } else {
      std::free(&message);
    }
  }

  /// Returns the number of slabs held, empty or not.
  std::size_t slabs() const {
    std::size_t all = 0;
    for (const Kind& kind : kinds_) all += kind.slabs;
    return all;
  }

 private:
  struct Free {
    Free* next;
  };
  struct Kind;
  struct alignas(64) Slab {
    Kind* kind;
    Slab* prev;
    Slab* next;
    Free* free;           ///< blocks that were used before
    std::uint32_t fresh;  ///< index of the first block that was never used: from there on the pages are untouched
    std::uint32_t used;
    Slab* all_prev;
    Slab* all_next;
  };
  struct Kind {
    std::uint32_t block_size = 0, blocks = 0;  ///< blocks: in one slab
    Slab* open = nullptr;
    Slab* spare = nullptr;  ///< the one empty slab that is kept, if any; it is in the list
    std::size_t slabs = 0;
  };

  static bool is_small(std::size_t size) { return in_slabs && size <= block_sizes.back(); }
  static std::size_t kind_for(std::size_t size) {
    std::size_t kind = 0;
    while (block_sizes[kind] < size) ++kind;
    return kind;
  }
  static Slab* slab_of(void* block) {
    return reinterpret_cast<Slab*>(reinterpret_cast<std::uintptr_t>(block) & ~std::uintptr_t{slab_size - 1});
  }
  void* take(Kind& kind) {
    Slab* slab = kind.open;
    if (slab == nullptr) [[unlikely]] {
      slab = add_slab(kind);
      if (slab == nullptr) return nullptr;
    }
    void* block = slab->free;
    if (block != nullptr) {
      slab->free = slab->free->next;
    } else {
      block = reinterpret_cast<std::byte*>(slab + 1) + std::size_t{slab->fresh++} * kind.block_size;
    }
    if (slab->used++ == 0 && slab == kind.spare) [[unlikely]]
      kind.spare = nullptr;
    if (slab->used == kind.blocks) [[unlikely]]
      close(*slab);
    return block;
  }
  void give_back(void* memory) {
    Slab* slab = slab_of(memory);
    Kind& kind = *slab->kind;
    slab->free = new (memory) Free{slab->free};
    if (slab->used-- == kind.blocks) [[unlikely]]
      open(*slab);
    if (slab->used == 0) [[unlikely]]
      kind.spare != nullptr ? drop(*slab) : void(kind.spare = slab);
  }

  Slab* add_slab(Kind& kind);
  void drop(Slab& slab);
  void open(Slab& slab);
  void close(Slab& slab);

  Slab* all_ = nullptr;
  std::array<Kind, block_sizes.size()> kinds_;
};

}  // namespace canele::comm
