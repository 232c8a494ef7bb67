// SPDX-License-Identifier: BSD-3-Clause
//
// HandleTable: names for objects that a peer must be able to refer to.
//
// Called by the thread that holds the engine's lock.
//
// A handle contains a generation, so that a stale or invented handle finds nothing.
//
//   handle: generation (32) | index + 1 (32)         chunks[index / 512] ─▶ │ objects │ generations │
//                                                    a free one's object is the index of the next free one
//
// Rejected: sending pointers, because a peer could name any address.
// Rejected: one array that doubles. A rank with a million announced sends would stop to copy 8 MiB, and hold twice what
// it needs.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "comm/state/under_lock.hpp"
#include "comm/wire/handle.hpp"

namespace canele::comm {

template <typename T>
class HandleTable {
 public:
  Handle add(T& object) {
    if (free_ == none) add_chunk();
    const std::uint32_t index = free_;
    Chunk& chunk = chunk_of(index);
    free_ = static_cast<std::uint32_t>(chunk.words[index % chunk_size] >> 1);
    chunk.words[index % chunk_size] = reinterpret_cast<std::uintptr_t>(&object);
    ++used_;
    return Handle{(std::uint64_t{chunk.generations[index % chunk_size]} << 32) | (index + 1)};
  }

  [[gnu::always_inline]] T* find(Handle handle) const {
    const std::uint32_t index = static_cast<std::uint32_t>(word_of(handle)) - 1;
    if (index >= chunks_.size() * chunk_size) return nullptr;
    const Chunk& chunk = chunk_of(index);
    return chunk.generations[index % chunk_size] == word_of(handle) >> 32 ? object_in(chunk.words[index % chunk_size])
                                                                          : nullptr;
  }

  void remove(Handle handle) {
    assert(find(handle) != nullptr);
    const std::uint32_t index = static_cast<std::uint32_t>(word_of(handle)) - 1;
    Chunk& chunk = chunk_of(index);
    ++chunk.generations[index % chunk_size];
    chunk.words[index % chunk_size] = free_word(free_);
    free_ = index;
    --used_;
  }

  std::size_t used() const { return used_; }
  /// Returns the memory for each object, in bytes, when the table is full.
  static constexpr std::size_t bytes_each() { return sizeof(Chunk) / chunk_size; }

  /// Calls visit(T&) for every object. `visit` may remove the object that it is given.
  template <typename Visit>
  void each(Visit visit) CANELE_UNDER_LOCK {
    for (std::size_t i = 0; i < chunks_.size() * chunk_size; ++i) {
      T* const object = object_in(chunk_of(static_cast<std::uint32_t>(i)).words[i % chunk_size]);
      if (object != nullptr) visit(*object);
    }
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0}, chunk_size = 512;
  /// A word is the address of an object, or odd. An odd word is twice the index of the next free entry, plus one.
  struct Chunk {
    std::uint64_t words[chunk_size];
    std::uint32_t generations[chunk_size];
  };
  static_assert(alignof(T) > 1);

  static std::uint64_t free_word(std::uint32_t next) { return std::uint64_t{next} << 1 | 1; }
  static T* object_in(std::uint64_t word) { return (word & 1) != 0 ? nullptr : reinterpret_cast<T*>(word); }
  Chunk& chunk_of(std::uint32_t index) const { return *chunks_[index / chunk_size]; }
  void add_chunk() {
    auto chunk = std::make_unique<Chunk>();
    const auto first = static_cast<std::uint32_t>(chunks_.size() * chunk_size);
    for (std::uint32_t i = 0; i < chunk_size; ++i) {
      chunk->words[i] = free_word(i + 1 < chunk_size ? first + i + 1 : none);
      chunk->generations[i] = 1;
    }
    chunks_.push_back(std::move(chunk));
    free_ = first;
  }

  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::uint32_t free_ = none;
  std::size_t used_ = 0;
};

}  // namespace canele::comm
