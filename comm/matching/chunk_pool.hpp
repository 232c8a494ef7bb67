// SPDX-License-Identifier: BSD-3-Clause
//
// ChunkPool: memory for many small objects of one kind, which a burst takes and gives back after it.
//
// Who: matching. Threads: under the engine's lock.
// Surprise: what is reserved cannot fail to be taken. Chunks go back when nothing is in use any more, all but one.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <forward_list>
#include <new>
#include <type_traits>

namespace canele::comm {

template <typename Object, std::size_t chunk_size>
class ChunkPool {
  static_assert(std::is_trivially_destructible_v<Object>);

 public:
  std::size_t in_use() const noexcept { return used_; }
  /// Throws std::bad_alloc, then nothing has changed.
  void reserve(std::size_t more) {
    while (spare_ < more) {
      chunks_.emplace_front();
      add_free(chunks_.front());
    }
  }
  /// After reserve().
  Object& take() noexcept {
    assert(free_ != nullptr);
    Cell* const cell = free_;
    free_ = cell->next;
    --spare_, ++used_;
    return *new (cell) Object{};
  }
  void give_back(Object& object) noexcept {
    Cell* const cell = reinterpret_cast<Cell*>(&object);
    cell->next = free_;
    free_ = cell;
    ++spare_, --used_;
    if (used_ == 0 && spare_ > chunk_size) end_burst();
  }

 private:
  union Cell {
    Cell() noexcept : next(nullptr) {}
    Object object;
    Cell* next;
  };
  using Chunk = std::array<Cell, chunk_size>;

  void add_free(Chunk& chunk) noexcept {
    for (Cell& one : chunk) {
      one.next = free_;
      free_ = &one;
    }
    spare_ += chunk_size;
  }
  void end_burst() noexcept {
    chunks_.erase_after(chunks_.begin(), chunks_.end());
    free_ = nullptr;
    spare_ = 0;
    add_free(chunks_.front());
  }

  std::forward_list<Chunk> chunks_;
  Cell* free_ = nullptr;
  std::size_t spare_ = 0, used_ = 0;
};

}  // namespace canele::comm
