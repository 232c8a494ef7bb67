// SPDX-License-Identifier: BSD-3-Clause
//
// Outbox and Inbox: the two ends of one Area. Pure memory: no system call, no allocation, no call back.
//
// Who: the shm driver and its tests.
// Threads: each end belongs to one thread at a time; the ends may run in two processes.
// Surprise: an Inbox hands out spans of shared memory that the sender could still change (it is trusted not to, a
//     hostile one may): whoever parses them copies a header before checking it.
#pragma once

#include <atomic>
#include <cassert>
#include <cstring>
#include <span>

#include "drivers/shm/area.hpp"

namespace canele::drivers::shm {

/// memcpy of at most line_payload bytes, inline: a call for eight bytes costs as much as the rest of a send. By eight
/// bytes at most: what was just stored in eights is not there yet for a load of sixteen, which then waits for memory.
inline void copy_small(std::byte* to, const void* from_memory, std::size_t size) {
  const auto* from = static_cast<const std::byte*>(from_memory);
  const auto copy = [&]<typename Word>(Word word, std::size_t at) {
    std::memcpy(&word, from + at, sizeof word);
    std::memcpy(to + at, &word, sizeof word);
  };
  // Two copies that may overlap cover every size between one and two times theirs.
  if (size >= 8) {
    copy(std::uint64_t{}, 0);
    for (std::size_t at = 8; at + 8 < size; at += 8) copy(std::uint64_t{}, at);
    copy(std::uint64_t{}, size - 8);
  } else if (size >= 4) {
    copy(std::uint32_t{}, 0);
    copy(std::uint32_t{}, size - 4);
  } else {
    for (std::size_t i = 0; i < size; ++i) to[i] = from[i];
  }
}

/// Stores what the other side may be asleep over. `strict`: a full fence (on x86), see Outbox::attach. Not strict: the
/// receiver's membarrier orders the store before the caller's look at the ParkPage, if the compiler keeps them in
/// order. Two stores, since a memory order that is not a constant is compiled as the strongest one.
template <class T>
void store_for_sleeper(std::atomic<T>& to, T value, bool strict) {
  if (strict) {
    to.store(value, std::memory_order_seq_cst);
  } else {
    to.store(value, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
}

/// The sending end: fills the peer's area.
class Outbox {
 public:
  /// `strict`: the two processes have no membarrier between them, so every store that the peer's sleep depends on is
  /// sequentially consistent (a full fence per message on x86).
  void attach(Area* area, bool strict) {
    *this = Outbox();
    area_ = area;
    strict_ = strict;
    next_ = &area->lines[0];
    generation_ = generation_at(0);
  }
  bool attached() const { return area_ != nullptr; }
  /// The receiver wrote nonsense into `consumed`.
  bool broken() const { return broken_; }

  /// The next line, or nullptr: no room. Filled, then published.
  Line* line() {
    return sent_ - consumed_ < line_count || (refresh() && sent_ - consumed_ < line_count) ? next_ : nullptr;
  }

  /// `size` contiguous bytes of the data ring, and a line to announce them with; or nullptr.
  std::byte* data(std::size_t size) {
    if (!room(size)) return nullptr;
    place_ = start_for(size);
    return area_->data + place_;
  }

  /// Would line() (size = 0) or data(size) succeed?
  bool room(std::size_t size) {
    assert(size <= largest_packet);
    if (line() == nullptr) return false;
    return size == 0 || fits(size) || (refresh() && fits(size));
  }

  /// Publishes the line that line() gave: its payload holds a packet of `size` bytes.
  void publish_small(std::size_t size) { publish(size, Kind::small); }

  /// Publishes the first `size` bytes of what data() gave last.
  void publish_data(std::size_t size, Kind kind, std::uint64_t key, std::uint64_t at) {
    const std::size_t taken = round_to_line(size);
    const std::size_t skipped = place_ == at_ ? 0 : data_size - at_;
    const Descriptor descriptor{static_cast<std::uint32_t>(place_), 0, key, at};
    std::memcpy(next_->payload, &descriptor, sizeof descriptor);
    head_ += static_cast<std::uint32_t>(skipped + taken);
    at_ = place_ + taken == data_size ? 0 : place_ + taken;
    publish(size, kind);
  }

  /// Asks the receiver to ring when it makes room; see Area::starved.
  void set_starved(bool starved) { store_for_sleeper(area_->starved, starved ? 1u : 0u, strict_); }

 private:
  std::size_t start_for(std::size_t size) const { return at_ + round_to_line(size) > data_size ? 0 : at_; }
  bool fits(std::size_t size) const {
    const std::size_t taken = round_to_line(size);
    const std::size_t skipped = at_ + taken > data_size ? data_size - at_ : 0;
    return (head_ - tail_) + skipped + taken <= data_size;
  }

  void publish(std::size_t size, Kind kind) {
    store_for_sleeper(next_->word, make_word(generation_, size, kind), strict_);
    ends_[sent_ % line_count] = head_;
    ++sent_;
    ++next_;
    if (sent_ % line_count == 0) [[unlikely]] {
      next_ = &area_->lines[0];
      generation_ = generation_at(sent_);
    }
  }

  /// Reads the receiver's progress. false: no news, or nonsense (broken()).
  bool refresh() {
    const std::uint64_t now = area_->consumed.load(std::memory_order_seq_cst);
    if (now == consumed_) return false;
    if (now < consumed_ || now > sent_) {
      broken_ = true;
      return false;
    }
    consumed_ = now;
    tail_ = ends_[(now - 1) % line_count];
    return true;
  }

  Area* area_ = nullptr;
  Line* next_ = nullptr;          ///< the line that comes next
  std::uint32_t generation_ = 0;  ///< its generation once it is filled
  std::uint64_t sent_ = 0;        ///< lines published
  std::uint64_t consumed_ = 0;    ///< lines free again, as last told
  std::size_t at_ = 0;            ///< next free place in the data ring
  std::size_t place_ = 0;         ///< what data() gave last
  std::uint32_t head_ = 0;        ///< bytes of the data ring ever used (modulo 2^32), skipped ends included
  std::uint32_t tail_ = 0;        ///< bytes of it free again
  bool strict_ = false;
  bool broken_ = false;
  std::uint32_t ends_[line_count] = {};  ///< head_ after each line: so the receiver tells one number only
};

/// What a line holds.
struct Arrival {
  bool sound = false;  ///< false: the sender wrote nonsense
  bool bulk = false;
  std::span<const std::byte> bytes;
  std::uint64_t key = 0, at = 0;
};

/// The receiving end: empties the own area.
class Inbox {
 public:
  void attach(Area* area, bool strict) {
    *this = Inbox();
    area_ = area;
    strict_ = strict;
    next_ = &area->lines[0];
    generation_ = generation_at(0);
  }
  void detach() { area_ = nullptr; }
  bool attached() const { return area_ != nullptr; }

  /// The word of the line that comes next. One load of a line that stays in the own cache while nothing comes.
  std::uint64_t word() const { return line().word.load(std::memory_order_seq_cst); }
  /// Does the word announce something?
  bool fresh(std::uint64_t word) const { return generation_of(word) == generation_; }
  bool empty() const { return !fresh(word()); }

  /// The payload of the line of a fresh `word` of kind small, where it lies. Empty: nonsense.
  std::span<const std::byte> small(std::uint64_t word) const {
    return {line().payload, length_of(word) <= line_payload ? length_of(word) : 0};
  }

  /// The packet in the line so many places after the next one, if it is there already, and small. Empty: it is not.
  std::span<const std::byte> ahead(std::size_t lines) const {
    const std::uint64_t number = taken_ + lines;
    const Line& there = area_->lines[number % line_count];
    const std::uint64_t announced = there.word.load(std::memory_order_acquire);
    const bool small = generation_of(announced) == generation_at(number) &&
                       kind_of(announced) == static_cast<std::uint8_t>(Kind::small) &&
                       length_of(announced) <= line_payload;
    return {there.payload, small ? length_of(announced) : 0};
  }

  /// What a fresh `word` of another kind announces.
  Arrival large(std::uint64_t word) const {
    const std::size_t length = length_of(word);
    Descriptor descriptor;
    std::memcpy(&descriptor, line().payload, sizeof descriptor);
    const bool bulk = kind_of(word) == static_cast<std::uint8_t>(Kind::bulk);
    if ((!bulk && kind_of(word) != static_cast<std::uint8_t>(Kind::packet)) || length == 0 || length > largest_packet ||
        descriptor.zero != 0 || descriptor.offset % line_size != 0 || descriptor.offset > data_size - length) {
      return {};
    }
    return {true, bulk, {area_->data + descriptor.offset, length}, descriptor.key, descriptor.at};
  }

  /// Frees the line, and `size` bytes of the data ring. true: progress was told, so a starved sender may have to be
  /// woken.
  bool pop(std::size_t size) {
    data_untold_ += round_to_line(size);
    return pop_line() || (data_untold_ >= data_told && tell());
  }
  /// The same for a packet inside its line.
  bool pop_line() {
    ++taken_;
    ++next_;
    if (taken_ % line_count == 0) [[unlikely]] {
      next_ = &area_->lines[0];
      generation_ = generation_at(taken_);
    }
    return taken_ - told_ >= lines_told && tell();
  }

  /// Tells progress now. false: nothing new.
  bool tell() {
    if (told_ == taken_) return false;
    told_ = taken_;
    data_untold_ = 0;
    store_for_sleeper(area_->consumed, taken_, strict_);
    return true;
  }

  /// The sender waits for room.
  bool sender_starved() const { return area_->starved.load(std::memory_order_seq_cst) != 0; }

 private:
  const Line& line() const { return *next_; }

  Area* area_ = nullptr;
  const Line* next_ = nullptr;    ///< the line that comes next
  std::uint32_t generation_ = 0;  ///< its generation once it is filled
  std::uint64_t taken_ = 0;       ///< lines consumed
  std::uint64_t told_ = 0;        ///< what `consumed` says
  std::size_t data_untold_ = 0;   ///< bytes of the data ring consumed since
  bool strict_ = false;
};

}  // namespace canele::drivers::shm
