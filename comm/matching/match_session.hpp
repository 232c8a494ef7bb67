// SPDX-License-Identifier: BSD-3-Clause
//
// MatchSession: the matcher's state of one session. Also the plain FIFO into which matchers link nodes.
//
// The session owns it, and the matcher uses it under the engine's lock: no other thread touches it.
//
// An alternative matcher keeps most of its state elsewhere. All matchers use the counts, and may use the arrival order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "comm/matching/arrival_index.hpp"
#include "comm/matching/node.hpp"
#include "comm/matching/recent_receives.hpp"

namespace canele::comm {

enum class MatchClass : std::uint8_t { exact, any_source, any_tag, any_any, masked };

inline MatchClass classify(std::int32_t source, std::uint64_t mask) noexcept {
  if (mask == ~std::uint64_t{0}) [[likely]]
    return source == rank_any ? MatchClass::any_source : MatchClass::exact;
  if (mask == 0) return source == rank_any ? MatchClass::any_any : MatchClass::any_tag;
  return MatchClass::masked;
}

/// A doubly linked FIFO through MatchNode::links, so that any node can be removed.
struct NodeFifo {
  MatchNode* first = nullptr;
  MatchNode* last = nullptr;

  void append(MatchNode& node) noexcept {
    node.links = MatchLinks{};
    node.links.prev = last;
    (last != nullptr ? last->links.next : first) = &node;
    last = &node;
  }
  void unlink(MatchNode& node) noexcept {
    (node.links.prev != nullptr ? node.links.prev->links.next : first) = node.links.next;
    (node.links.next != nullptr ? node.links.next->links.prev : last) = node.links.prev;
    node.links = MatchLinks{};
  }
  /// Calls visit(MatchNode&) for every node, the oldest first; the FIFO must not change meanwhile.
  template <typename Visit>
  void each(Visit visit) const {
    for (MatchNode* node = first; node != nullptr; node = node->links.next) visit(*node);
  }
  /// Removes and returns the oldest node for which fits(const MatchNode&) holds; or returns nullptr.
  template <typename Fits>
  MatchNode* take_first(Fits fits) {
    for (MatchNode* node = first; node != nullptr; node = node->links.next) {
      if (!fits(*node)) continue;
      unlink(*node);
      return node;
    }
    return nullptr;
  }
};

struct alignas(64) MatchSession {
  /// most_apart: tests shorten the list of recent receives, so that a few receives already overflow it.
  explicit MatchSession(unsigned most_apart = RecentReceives::slot_count) noexcept : recent_receives(most_apart) {}

  std::uint32_t id = 0;
  bool has_secondary = false;      ///< unexpected messages are indexed by more than their exact keys.
  bool has_entries = false;        ///< each of them has an index entry.
  bool orders_by_arrival = false;  ///< and is in the arrival order of the session.
  bool indexes_any_source = false, indexes_any_tag = false;
  std::size_t posted = 0, unexpected = 0;
  std::size_t posted_inexact = 0;  ///< all classes but exact.
  std::size_t filed = 0;           ///< exact receives in the table; the recent ones are older.
  RecentReceives recent_receives;
  std::size_t posted_any_source = 0, posted_any_tag = 0;
  NodeFifo any_any, masked;    ///< posted receives of these classes.
  ArrivalIndex arrival_index;  ///< order of the unexpected messages, once it is needed
};

}  // namespace canele::comm
