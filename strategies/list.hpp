// SPDX-License-Identifier: BSD-3-Clause
//
// An intrusive FIFO of items, through two of their scratch words.
//
//   first ⇄ … ⇄ last        prev = scratch[Slot], next = scratch[Slot + 1]
//
// Used by the strategies, so by any thread, under the engine's lock. The links live in Item::scratch, so being in a
// list costs an item nothing.
//
// Rejected: std::list (allocates); one fixed pair of link fields (the priority strategy needs an item in two lists).
#pragma once

#include "strategies/strategy.hpp"

namespace canele::strategies {

template <int Slot>
class ItemList {
 public:
  Item* first() const { return first_; }
  Item* last() const { return last_; }
  bool empty() const { return first_ == nullptr; }
  static Item* next(const Item& item) { return static_cast<Item*>(item.scratch[Slot + 1]); }
  static Item* prev(const Item& item) { return static_cast<Item*>(item.scratch[Slot]); }

  template <typename Visit>
  void each(const Visit& visit) const {
    for (const Item* item = first_; item != nullptr; item = next(*item)) visit(*item);
  }

  void push_back(Item& item) {
    item.scratch[Slot] = last_;
    item.scratch[Slot + 1] = nullptr;
    if (last_ != nullptr) {
      last_->scratch[Slot + 1] = &item;
    } else {
      first_ = &item;
    }
    last_ = &item;
  }

  void remove(Item& item) {
    Item* before = prev(item);
    Item* after = next(item);
    if (before != nullptr) {
      before->scratch[Slot + 1] = after;
    } else {
      first_ = after;
    }
    if (after != nullptr) {
      after->scratch[Slot] = before;
    } else {
      last_ = before;
    }
    item.scratch[Slot] = item.scratch[Slot + 1] = nullptr;
  }

 private:
  Item* first_ = nullptr;
  Item* last_ = nullptr;
};

}  // namespace canele::strategies
