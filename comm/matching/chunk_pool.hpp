// SPDX-License-Identifier: BSD-3-Clause
//
// ChunkPool: memory for many small objects of one kind, taken by a burst and returned after it.
//
// Used by matching under the engine's lock: one thread at a time.
//
// Objects that have been reserved can be taken without failure. When no object is in use any more, all chunks but the
// first are freed. Each chunk is as large as all chunks before it together; from 256 KiB on it is a huge page.
//
//   chunks_: │ first │ │ equal │ │ twice │ … │ huge page │ │ huge page: used ─▶ fresh_ … fresh_end_ │
//   free_ ─▶ object that was used ─▶ …
#pragma once

#include <cassert>
#include <cstddef>
#include <new>
#include <type_traits>
#include <vector>

#include "comm/matching/pages.hpp"

namespace canele::comm {

template <typename Object, std::size_t first_chunk>
class ChunkPool {
  static_assert(std::is_trivially_destructible_v<Object>);

 public:
  ChunkPool() = default;
  ~ChunkPool() {
    while (!chunks_.empty()) drop_last();
  }
  ChunkPool(const ChunkPool&) = delete;
  ChunkPool& operator=(const ChunkPool&) = delete;

  std::size_t in_use() const noexcept { return used_; }
  std::size_t chunks() const noexcept { return chunks_.size(); }
  /// Makes room for `more` objects. Throws std::bad_alloc without a visible change.
  void reserve(std::size_t more) {
    while (spare_ < more) add_chunk();
  }
  /// Takes an object. Requires a preceding reserve().
  Object& take() noexcept {
    assert(spare_ > 0);
    Cell* cell = free_;
    if (cell != nullptr) {
      free_ = cell->next;
    } else {
      assert(fresh_ != fresh_end_);
      cell = fresh_++;
    }
    --spare_, ++used_;
    return *new (cell) Object{};
  }
  void give_back(Object& object) noexcept {
    add_free(reinterpret_cast<Cell*>(&object));
    ++spare_, --used_;
    if (used_ == 0 && chunks_.size() > 1) end_burst();
  }

 private:
  union Cell {
    Object object;
    Cell* next;
  };
  struct Chunk {
    Cell* cells;
    std::size_t count;
  };
  static constexpr std::size_t huge_from = huge_page / 8, cells_of_huge = huge_page / sizeof(Cell);

  void add_free(Cell* cell) noexcept {
    cell->next = free_;
    free_ = cell;
  }
  void add_chunk() {
    const std::size_t all = used_ + spare_;
    chunks_.reserve(chunks_.size() + 1);
    Chunk chunk{nullptr, all == 0 ? first_chunk : all};
    if (all * sizeof(Cell) >= huge_from) {
      chunk = {static_cast<Cell*>(map_huge_page()), cells_of_huge};
      // If no huge page is available, a few objects are enough to go on.
      if (chunk.cells == nullptr) chunk.count = first_chunk;
    }
    if (chunk.cells == nullptr) {
      chunk.cells = static_cast<Cell*>(::operator new(chunk.count * sizeof(Cell), alignment));
    } else {
      want_huge_pages(chunk.cells);
    }
    while (fresh_ != fresh_end_) add_free(fresh_++);
    chunks_.push_back(chunk);
    use(chunk);
  }
  void use(const Chunk& chunk) noexcept {
    fresh_ = chunk.cells;
    fresh_end_ = fresh_ + chunk.count;
    spare_ += chunk.count;
  }
  void drop_last() noexcept {
    const Chunk last = chunks_.back();
    chunks_.pop_back();
    last.count == cells_of_huge ? unmap_huge_page(last.cells) : ::operator delete(last.cells, alignment);
  }
  void end_burst() noexcept {
    while (chunks_.size() > 1) drop_last();
    free_ = nullptr;
    spare_ = 0;
    use(chunks_.front());
  }
  static constexpr std::align_val_t alignment{alignof(Object)};
  static_assert(sizeof(Cell) * first_chunk < huge_from);

  std::vector<Chunk> chunks_;
  Cell* free_ = nullptr;
  Cell* fresh_ = nullptr;  ///< from here to fresh_end_, no cell was ever used
  Cell* fresh_end_ = nullptr;
  std::size_t spare_ = 0, used_ = 0;
};

}  // namespace canele::comm
