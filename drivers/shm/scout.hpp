// SPDX-License-Identifier: BSD-3-Clause
//
// Scout: walks through an area ahead of its Inbox and finds the packets that are to come, each once, in their order.
//
// Who: the shm driver, where the engine wants to look ahead. Threads: the Inbox's.
// Surprise: it believes nothing: the sender may be writing, or hostile. What it finds lies inside of the area, and is a
//     hint; the Inbox looks again, and has the say.
#pragma once

#include <cstring>
#include <span>

#include "drivers/shm/area.hpp"

namespace canele::drivers::shm {

/// Are they the start and the length of a packet or a piece?
inline bool is_sound(Kind kind, std::size_t start, std::size_t length) {
  return (kind == Kind::bulk ? start == 0 : kind == Kind::packet && start >= record_head(kind)) && length > 0 &&
         length <= largest_packet;
}

/// The packet of several lines that begins at `line`, with that word. Empty: it is another one, or nonsense.
inline std::span<const std::byte> packet_in_lines(const Line* line, std::uint64_t word) {
  const std::size_t size = length_of_line(word);
  if (size <= line_payload || size > largest_in_lines) return {};
  return {reinterpret_cast<const std::byte*>(line) + start_in_lines(size), size};
}

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
      pass_lines(1);
      return {true, Kind::packet, {line.payload, length_of_line(word)}};
    }
    if (const auto bytes = packet_in_lines(line_, word); !bytes.empty()) {
      pass_lines(lines_for(bytes.size()));
      return {true, Kind::packet, bytes};
    }
    Descriptor descriptor;
    std::memcpy(&descriptor, line.payload, sizeof descriptor);
    if (length_of_line(word) != names_a_record || descriptor.kind > 0xffff) return {};
    const Found found = record(descriptor.offset, kind_of(descriptor.kind), descriptor.kind >> 8, descriptor.length,
                               is_chained(descriptor.kind));
    if (found.there) pass_lines(1);
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
    return record(at, kind_of(word), start_of(word), length_of(word), is_chained(word));
  }

  /// Goes on behind it.
  Found record(std::size_t at, Kind kind, std::size_t start, std::size_t length, bool chain) {
    const std::size_t end = at + round_to_line(start + length);
    if (!is_sound(kind, start, length) || at % line_size != 0 || end > data_size) return {};
    at_ = end == data_size ? 0 : end;
    record_ = chain ? &word_at(*area_, at_) : &no_record;
    return {true, kind, {area_->data + at + start, length}};
  }

  void pass_lines(std::size_t count) {
    if ((line_ += count) >= end_of_lines(*area_)) line_ = &area_->lines[0];
  }

  Area* area_ = nullptr;
  const Line* line_ = nullptr;
  const std::atomic<std::uint64_t>* record_ = nullptr;
  std::uint64_t number_ = 0;  ///< no message has it: an Inbox is ahead of a scout that was never sent
  std::size_t at_ = 0;
};

}  // namespace canele::drivers::shm
