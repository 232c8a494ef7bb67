// SPDX-License-Identifier: BSD-3-Clause
//
// RxCursor: walks through a channel ahead of its RxRing and finds the future packets, each once, in order.
//
// Used by the shm driver where the engine looks ahead, by the thread of the RxRing. The RxCursor trusts nothing: the
// sender may still be writing, or hostile. What it finds lies inside the channel and is only a hint. The RxRing looks
// again and decides.
#pragma once

#include <cstring>
#include <span>

#include "drivers/shm/channel.hpp"

namespace canele::drivers::shm {

/// Returns true if `start` and `length` can be those of a packet or a piece.
inline bool is_sound(Kind kind, std::size_t start, std::size_t length) {
  return (kind == Kind::bulk ? start == 0 : kind == Kind::packet && start >= record_head(kind)) && length > 0 &&
         length <= largest_packet;
}

/// Returns the packet of several lines that begins at `line`, with that word. Empty: it is a packet of another form, or
/// malformed.
inline std::span<const std::byte> packet_in_lines(const Line* line, std::uint64_t word) {
  const std::size_t size = length_of_line(word);
  if (size <= line_payload || size > largest_in_lines) return {};
  return {reinterpret_cast<const std::byte*>(line) + start_in_lines(size), size};
}

class RxCursor {
 public:
  RxCursor() = default;
  /// Begins at the position of an RxRing.
  RxCursor(Channel& channel, const Line* line, const std::atomic<std::uint64_t>* record, std::uint64_t number,
           std::size_t at)
      : channel_(&channel), line_(line), record_(record), number_(number), at_(at) {}

  /// Returns the number of the message that it looks for next.
  std::uint64_t number() const { return number_; }

  /// Returns the next packet, in either ring. Empty: it is not there yet, or is malformed.
  std::span<const std::byte> next() {
    for (;;) {
      const std::uint64_t word = line_->word.load(std::memory_order_acquire);
      const Found found = number_of_line(word) == number_ ? in_line(word) : in_data_ring();
      if (!found.there) return {};
      ++number_;
      if (found.kind == Kind::packet) return found.bytes;  // bulk pieces are skipped
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
      word = word_at(*channel_, 0).load(std::memory_order_acquire);
      if (!is_record(word, number_)) return {};
    }
    return record(at, kind_of(word), start_of(word), length_of(word), is_chained(word));
  }

  /// Returns the record at `at` if it is sound, and moves behind it.
  Found record(std::size_t at, Kind kind, std::size_t start, std::size_t length, bool chain) {
    const std::size_t end = at + round_to_line(start + length);
    if (!is_sound(kind, start, length) || at % line_size != 0 || end > data_size) return {};
    at_ = end == data_size ? 0 : end;
    record_ = chain ? &word_at(*channel_, at_) : &no_record;
    return {true, kind, {channel_->data + at + start, length}};
  }

  void pass_lines(std::size_t count) {
    if ((line_ += count) >= end_of_lines(*channel_)) line_ = &channel_->lines[0];
  }

  Channel* channel_ = nullptr;
  const Line* line_ = nullptr;
  const std::atomic<std::uint64_t>* record_ = nullptr;
  std::uint64_t number_ = 0;  ///< no message has number 0: an RxRing is ahead of an RxCursor that has not started
  std::size_t at_ = 0;
};

}  // namespace canele::drivers::shm
