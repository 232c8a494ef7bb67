// SPDX-License-Identifier: BSD-3-Clause
//
// Arrivals: the unexpected messages of one session in order of arrival, and room to file them under more than their
// exact key.
//
// Who: matchers, for sessions in which somebody has asked for messages by more than an exact key.
// Threads: under the engine's lock.
// Surprise: the links are not in the messages: most sessions never need them, and a message is one line without.
//
//   first ─▶ message ─listing─▶ │ any source │ any tag │ earlier, later │      64 bytes, in chunks of 64
//                                                           └─▶ message ─listing─▶ …
//
// Rejected: links in every message (three more lines to be fetched when one is taken, two of them its neighbours').
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <forward_list>

#include "comm/matching/node.hpp"

namespace canele::comm {

/// What a message is filed under besides its exact key.
struct alignas(64) Listing {
  MatchLinks any_source, any_tag;
  UnexpectedNode* earlier = nullptr;
  union {
    UnexpectedNode* later = nullptr;  ///< by arrival
    Listing* next_free;
  };
};
static_assert(sizeof(Listing) == 64);

class Arrivals {
 public:
  UnexpectedNode* first() const noexcept { return first_; }
  static UnexpectedNode* after(const UnexpectedNode& message) noexcept { return message.listing->later; }
  bool empty() const noexcept { return first_ == nullptr && last_ == nullptr; }

  /// Makes room for `more` messages, so that append() cannot fail. Throws std::bad_alloc, then nothing has changed.
  void reserve(std::size_t more) {
    while (spare_ < more) {
      chunks_.emplace_front();
      add_free(chunks_.front());
    }
  }
  /// The youngest. After reserve().
  void append(UnexpectedNode& message) noexcept {
    assert(message.listing == nullptr && free_ != nullptr);
    Listing* const listing = free_;
    free_ = listing->next_free;
    --spare_, ++used_;
    *listing = Listing{};
    message.listing = listing;
    listing->earlier = last_;
    (last_ != nullptr ? last_->listing->later : first_) = &message;
    last_ = &message;
  }
  void remove(UnexpectedNode& message) noexcept {
    Listing* const listing = message.listing;
    message.listing = nullptr;
    (listing->earlier != nullptr ? listing->earlier->listing->later : first_) = listing->later;
    (listing->later != nullptr ? listing->later->listing->earlier : last_) = listing->earlier;
    listing->next_free = free_;
    free_ = listing;
    ++spare_, --used_;
    if (used_ == 0 && spare_ > chunk_size) end_burst();
  }

 private:
  static constexpr std::size_t chunk_size = 64;
  using Chunk = std::array<Listing, chunk_size>;

  void add_free(Chunk& chunk) noexcept {
    for (Listing& one : chunk) {
      one.next_free = free_;
      free_ = &one;
    }
    spare_ += chunk_size;
  }
  /// All chunks but one go back.
  void end_burst() noexcept {
    chunks_.erase_after(chunks_.begin(), chunks_.end());
    free_ = nullptr;
    spare_ = 0;
    add_free(chunks_.front());
  }

  UnexpectedNode* first_ = nullptr;
  UnexpectedNode* last_ = nullptr;
  std::forward_list<Chunk> chunks_;
  Listing* free_ = nullptr;
  std::size_t spare_ = 0, used_ = 0;
};

}  // namespace canele::comm
