// SPDX-License-Identifier: BSD-3-Clause
//
// Window, by the native API. Threads: as in window.hpp.
//
// The key travels by way of rank 2. The first operation is thus the first contact of ranks 0 and 1.
#pragma once

#include <canele/one_sided.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "link.hpp"

namespace canele::perf::progress {

class Window {
 public:
  Window(Link& link, int tag, std::size_t words) : memory_(words) {
    Card card{};
    if (link.rank() == 1) {
      registered_.emplace(link.engine(), memory_);
      slot_.emplace(link.engine(), arrived_.adding());
      card = {registered_->key(), slot_->slot()};
      send(link, 2, tag, &card, sizeof card);
    } else if (link.rank() == 2) {
      receive(link, 1, tag, &card, sizeof card);
      send(link, 0, tag, &card, sizeof card);
    } else {
      receive(link, 2, tag, &card, sizeof card);
      key_.emplace(link.engine(), card.key);
      put_.slot = card.slot;
    }
  }

  // Each returns when the operation is over at the target. A put also notifies it.
  void put(std::span<const std::int64_t> from) { key_->put(0, from, put_); }
  void get(std::span<std::int64_t> into) { key_->get(0, into); }
  void accumulate(std::span<const std::int64_t> from) { key_->accumulate(0, from, CANELE_SUM); }

  /// Returns the memory of rank 1, on that rank.
  std::span<const std::int64_t> words() { return memory_; }

 private:
  struct Card {
    canele::key_bytes key;
    std::uint32_t slot;
  };

  std::vector<std::int64_t> memory_;
  canele::completion_counter arrived_;
  std::optional<canele::memory> registered_;
  std::optional<canele::notification> slot_;
  std::optional<canele::key> key_;
  canele::access_options put_;
};

}  // namespace canele::perf::progress
