// SPDX-License-Identifier: BSD-3-Clause
//
// What all strategies share: control items in a FIFO of their own, and bulk items that take turns.
//
// Used by the strategies, so by any thread, under the engine's lock.
//
// Bulk items and envelopes alternate packet by packet when both wait. So a large transfer delays a small message by one
// slice at most, and a stream of small messages does not stop a large transfer.
#pragma once

#include "strategies/list.hpp"

namespace canele::strategies {

/// Plans control chunks first, as many as fit. Returns false if some did not fit: no envelope may overtake them.
inline bool put_control(ItemList<0>& control, const RailView& rail, Plan& plan) {
  while (Item* item = control.first()) {
    if (plan.count == Plan::max_items || plan.size + item->size > rail.room) return false;
    control.remove(*item);
    plan.put(*item);
  }
  return true;
}

/// Bulk items. The one with the highest priority goes next, the longest-waiting among equals. It stays in the list
/// until it is removed, but moves behind its equals.
class BulkQueue {
 public:
  bool empty() const { return list_.empty(); }
  Item* first() const { return list_.first(); }
  void add(Item& item) { list_.push_back(item); }
  void remove(Item& item) { list_.remove(item); }
  template <typename Visit>
  void each(const Visit& visit) const {
    list_.each(visit);
  }

  /// Plans a bulk item, if it is the turn of one; returns whether it did. `envelopes_wait`: they take the next turn.
  bool put(const RailView& rail, bool envelopes_wait, Plan& plan) {
    if (list_.empty() || !rail.bulk_allowed || (envelopes_wait && bulk_was_last_)) {
      bulk_was_last_ = false;
      return false;
    }
    Item* best = list_.first();
    for (Item* item = best; item != nullptr; item = list_.next(*item)) {  // few: granted transfers
      if (item->priority > best->priority) best = item;
    }
    list_.remove(*best);
    list_.push_back(*best);
    plan.put(*best);
    bulk_was_last_ = true;
    return true;
  }

 private:
  ItemList<0> list_;
  bool bulk_was_last_ = false;
};

}  // namespace canele::strategies
