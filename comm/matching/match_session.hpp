// SPDX-License-Identifier: BSD-3-Clause
//
// MatchSession: the matcher's state of one session; and the two plain FIFOs that matchers link nodes into.
//
// Who: the session owns it, the matcher uses it.
// Threads: under the engine's lock.
// Surprise: an alternative keeps most of its state elsewhere: only the counts, and the arrivals if it wants them, are
//     used by all.
#pragma once

#include <cstddef>
#include <cstdint>

#include "comm/matching/arrivals.hpp"
#include "comm/matching/node.hpp"
#include "comm/matching/posted_window.hpp"

namespace canele::comm {

enum class MatchClass : std::uint8_t { exact, any_source, any_tag, any_any, masked };

inline MatchClass classify(std::int32_t source, std::uint64_t mask) noexcept {
  if (mask == ~std::uint64_t{0}) [[likely]]
    return source == rank_any ? MatchClass::any_source : MatchClass::exact;
  if (mask == 0) return source == rank_any ? MatchClass::any_any : MatchClass::any_tag;
  return MatchClass::masked;
}

/// A FIFO through MatchNode::links; the nodes know their neighbours, so any can be taken out.
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
  /// visit(MatchNode&) for every node, the oldest first; nothing may change meanwhile.
  template <typename Visit>
  void each(Visit visit) const {
    for (MatchNode* node = first; node != nullptr; node = node->links.next) visit(*node);
  }
  /// The oldest that fits(const MatchNode&), taken out; or nullptr.
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
  /// Tests let the window be shorter, so that few receives are many.
  explicit MatchSession(unsigned window_length = PostedWindow::slot_count) noexcept : window(window_length) {}

  std::uint32_t id = 0;
  bool files_elsewhere = false;  ///< unexpected messages: under more than their exact keys
  bool lists = false;            ///< each has a listing
  bool orders_arrivals = false;  ///< and is in the session's order
  bool indexes_any_source = false, indexes_any_tag = false;
  std::size_t posted = 0, unexpected = 0;
  std::size_t posted_inexact = 0;  ///< all classes but exact
  std::size_t filed = 0;           ///< exact receives in the table; those in the window are older
  PostedWindow window;
  std::size_t posted_any_source = 0, posted_any_tag = 0;
  NodeFifo any_any, masked;  ///< posted receives of these classes
  Arrivals arrivals;         ///< of the unexpected messages, once it lists them
};

}  // namespace canele::comm
