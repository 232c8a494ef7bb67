// SPDX-License-Identifier: BSD-3-Clause
//
// Scout: walks through an area ahead of its Inbox and finds the packets that are to come, each once, in their order.
//
// Who: the shm driver, where the engine wants to look ahead. Threads: the Inbox's.
// Surprise: it believes nothing: the sender may be writing, or hostile. What it finds lies inside of the area, and is a
//     hint; the Inbox looks again, and has the say.
#pragma once

#include <cstring>
#include <iterator>
#include <span>

#include "drivers/shm/area.hpp"

namespace canele::drivers::shm {

class Scout {
 public:
  Scout() = default;
  /// Begins where an Inbox is.
  Scout(Area& area, const Line* line, const std::atomic<std::uint64_t>* record, std::uint64_t number, std::size_t at)
      : area_(&area), line_(line), record_(record), number_(number), at_(at) {}

  /// Of the message that it looks for next.
  std::uint64_t number() const { return number_; }

  /// The next packet, wherever it lies. Empty: it is not there yet, or makes no sense.
  std::span<const std::byte> next() {
    for (;;) {
      const std::uint64_t word = line_->word.load(std::memory_order_acquire);
      const Found found = number_of_line(word) == number_ ? in_line(word) : in_data_ring();
      if (!found.there) return {};
      ++number_;
      if (found.kind == Kind::packet) return found.bytes;  // pieces of bulk are passed over
    }
  }

 private:
  struct Found {
    bool there = false;
    Kind kind = Kind::packet;
    std::span<const std::byte> bytes = {};
  };

  Found in_line(std::uint64_t word) {
    const Line& line = *line_;
    if (length_of_line(word) <= line_payload) {
      pass_line();
      return {true, Kind::packet, {line.payload, length_of_line(word)}};
    }
    Descriptor descriptor;
    std::memcpy(&descriptor, line.payload, sizeof descriptor);
    if (length_of_line(word) != names_a_record || descriptor.kind > 0xff) return {};
    const Found found =
        record(descriptor.offset, kind_of(descriptor.kind), descriptor.length, is_chained(descriptor.kind));
    if (found.there) pass_line();
    return found;
  }

  Found in_data_ring() {
    std::uint64_t word = record_->load(std::memory_order_acquire);
    if (!is_record(word, number_)) return {};
    std::size_t at = at_;
    if (kind_of(word) == Kind::skip) {
      at = 0;
      word = word_at(*area_, 0).load(std::memory_order_acquire);
      if (!is_record(word, number_)) return {};
    }
    return record(at, kind_of(word), length_of(word), is_chained(word));
  }

  /// Goes on behind it.
  Found record(std::size_t at, Kind kind, std::size_t length, bool chain) {
    const bool sound = (kind == Kind::packet || kind == Kind::bulk) && length > 0 && length <= largest_packet &&
                       at % line_size == 0 && at + record_size(length, kind) <= data_size;
    if (!sound) return {};
    const std::size_t end = at + record_size(length, kind);
    at_ = end == data_size ? 0 : end;
    record_ = chain ? &word_at(*area_, at_) : &no_record;
    return {true, kind, {area_->data + at + record_head(kind), length}};
  }

  void pass_line() {
    if (++line_ == std::end(area_->lines)) line_ = &area_->lines[0];
  }

  Area* area_ = nullptr;
  const Line* line_ = nullptr;
  const std::atomic<std::uint64_t>* record_ = nullptr;
  std::uint64_t number_ = 0;  ///< no message has it: an Inbox is ahead of a scout that was never sent
  std::size_t at_ = 0;
};

}  // namespace canele::drivers::shm
