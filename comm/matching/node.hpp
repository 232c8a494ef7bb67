// SPDX-License-Identifier: BSD-3-Clause
//
// What matching links together: posted receives and unexpected messages, both embedded in objects owned by others.
//
// Who: the matcher, under the engine's lock.
// Threads: under the engine's lock.
// Surprise: one node type serves both, because under one key of one class only one of the two kinds can be queued:
//     a message that found a posted receive would not be unexpected.
#pragma once

#include <cstdint>

namespace canele::comm {

inline constexpr std::int32_t rank_any = -1;

struct MatchNode;

/// Links of one queue. `tail` is valid in the head only; `chain` links heads that overflow one bucket of the table.
struct MatchLinks {
  MatchNode* prev = nullptr;
  MatchNode* next = nullptr;
  MatchNode* tail = nullptr;
  MatchNode* chain = nullptr;
};

/// Where a matcher that keeps entries outside the nodes has this one's (alternatives/lane_list.hpp).
struct MatchPlace {
  void* block;
  std::uint32_t lane;
};

struct MatchNode {
  std::uint64_t tag = 0;
  std::uint64_t stamp = 0;       ///< order of posting or of arrival, over the whole engine
  std::uint32_t session = 0;     ///< local number of the session
  std::int32_t source = 0;       ///< rank, or rank_any
  bool posted = false;           ///< a receive; else an unexpected message
  bool queued = false;           ///< in the matcher
  std::uint8_t match_class = 0;  ///< posted: the class whose queue holds it
  union {
    MatchLinks links{};  ///< posted: the queue of its class; unexpected: the queue of the exact key
    MatchPlace place;
  };
};

/// A receive that waits for its message.
struct PostedNode : MatchNode {
  std::uint64_t mask = ~std::uint64_t{0};
};

/// A message that waits for its receive. The further links are used only in sessions where receives of those classes
/// have been posted.
struct UnexpectedNode : MatchNode {
  MatchLinks any_source_links;
  MatchLinks any_tag_links;
  UnexpectedNode* arrival_prev = nullptr;  ///< all unexpected messages of the session, in order of arrival
  UnexpectedNode* arrival_next = nullptr;
};

}  // namespace canele::comm
