// SPDX-License-Identifier: BSD-3-Clause
//
// HandleTable: names for objects that a peer must be able to refer to.
//
// Who: the engine, under its lock.
// Threads: under the engine's lock.
// Surprise: a handle carries a generation, so that an old or invented one finds nothing.
//
//   handle: generation (32) | index + 1 (32)         slots: [object, generation] … free ones linked by index
//
// Rejected: sending pointers (a peer could name any address).
#pragma once

#include <cassert>
#include <cstdint>
#include <vector>

namespace canele::comm {

template <typename T>
class HandleTable {
 public:
  std::uint64_t add(T& object) {
    if (free_ == none) {
      slots_.push_back({nullptr, 1, none});
      free_ = static_cast<std::uint32_t>(slots_.size() - 1);
    }
    const std::uint32_t index = free_;
    Slot& slot = slots_[index];
    free_ = slot.next_free;
    slot.object = &object;
    ++used_;
    return (std::uint64_t{slot.generation} << 32) | (index + 1);
  }

  T* find(std::uint64_t handle) const {
    const std::uint32_t index = static_cast<std::uint32_t>(handle) - 1;
    if (index >= slots_.size() || slots_[index].generation != handle >> 32) return nullptr;
    return slots_[index].object;
  }

  void remove(std::uint64_t handle) {
    assert(find(handle) != nullptr);
    const std::uint32_t index = static_cast<std::uint32_t>(handle) - 1;
    Slot& slot = slots_[index];
    slot.object = nullptr;
    ++slot.generation;
    slot.next_free = free_;
    free_ = index;
    --used_;
  }

  std::size_t used() const { return used_; }

  /// visit(T&) for every object; visit may remove the one it is given.
  template <typename Visit>
  void each(Visit visit) {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].object != nullptr) visit(*slots_[i].object);
    }
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  struct Slot {
    T* object;
    std::uint32_t generation;
    std::uint32_t next_free;
  };
  std::vector<Slot> slots_;
  std::uint32_t free_ = none;
  std::size_t used_ = 0;
};

}  // namespace canele::comm
