// SPDX-License-Identifier: BSD-3-Clause
//
// What all strategies share: control items in their own FIFO, bulk items taking turns.
//
// Who: the strategies.
// Threads: under the engine's lock.
// Surprise: bulk and envelopes alternate packet by packet when both wait, so that a large transfer delays a small
//     message by one slice at most, and a stream of small ones does not stop a large transfer.
#pragma once

#include "strategies/list.hpp"

namespace canele::strategies {

/// Control chunks first, as many as fit. False: some did not, and no envelope may overtake them.
inline bool put_control(ItemList<0>& control, const RailView& rail, Plan& plan) {
  while (Item* item = control.first()) {
    if (plan.count == Plan::max_items || plan.size + item->size > rail.room) return false;
    control.remove(*item);
    plan.put(*item);
  }
  return true;
}

/// Bulk items, of which the one with the highest priority goes next, the longest-waiting among equals; it stays in the
/// list until it is removed, but moves behind its equals.
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

  /// True if a bulk item was planned. `envelopes_wait`: they take the next turn.
  bool put(const RailView& rail, bool envelopes_wait, Plan& plan) {
    if (list_.empty() || !rail.bulk_allowed || (envelopes_wait && bulk_was_last_)) {
      bulk_was_last_ = false;
      return false;
    }
    Item* best = list_.first();
    for (Item* item = best; item != nullptr; item = list_.next(*item)) {  // granted transfers: few
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
