// SPDX-License-Identifier: BSD-3-Clause
//
// TxRing and RxRing: the two ends of one Channel. Pure memory: no system call, no allocation, no callback.
//
// Used by the shm driver and its tests. Each end belongs to one thread at a time; the ends may be in two processes.
//
// An RxRing hands out spans of shared memory that the sender could still change (a correct sender does not, a hostile
// one may). Code that parses them copies a header before it checks the header.
#pragma once

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstring>
#include <span>
#include <utility>

#include "drivers/shm/rx_cursor.hpp"

namespace canele::drivers::shm {

/// Copies at most line_payload bytes, inline: a call for eight bytes costs as much as the rest of a send. Copies eight
/// bytes at most at a time: a load of sixteen cannot be forwarded from two stores of eight, and would wait for memory.
inline void copy_small(std::byte* to, const void* from_memory, std::size_t size) {
  const auto* from = static_cast<const std::byte*>(from_memory);
  const auto copy = [&]<typename Word>(Word word, std::size_t at) {
    std::memcpy(&word, from + at, sizeof word);
    std::memcpy(to + at, &word, sizeof word);
  };
  // Two copies that may overlap cover every size between one and two times their own.
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

/// Copies somewhat longer blocks, sixteen bytes at a time; the last two copies may overlap.
inline void copy_some(std::byte* to, const void* from_memory, std::size_t size) {
  struct Sixteen {
    std::uint64_t words[2];
  };
  if (size < sizeof(Sixteen)) return copy_small(to, from_memory, size);
  const auto* from = static_cast<const std::byte*>(from_memory);
  const auto copy = [&](std::size_t at) {
    Sixteen some;
    std::memcpy(&some, from + at, sizeof some);
    std::memcpy(to + at, &some, sizeof some);
  };
  for (std::size_t at = 0; at + sizeof(Sixteen) < size; at += sizeof(Sixteen)) copy(at);
  copy(size - sizeof(Sixteen));
}

/// Stores a word that the other process may sleep on. `strict`: a full fence (on x86), see TxRing::attach. Not strict:
/// the receiver's membarrier orders the store before the caller's check of the SleepPage, if the compiler keeps them in
/// order. The two branches exist because a memory order that is not a constant is compiled as the strongest one.
template <class T>
void store_for_sleeper(std::atomic<T>& to, T value, bool strict) {
  if (strict) {
    to.store(value, std::memory_order_seq_cst);
  } else {
    to.store(value, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
}

/// Claims a line that will be written soon: takes it out of the other cores' caches.
inline void claim_line([[maybe_unused]] const std::byte* line) {
#if defined(__x86_64__) || defined(__i386__)
  asm volatile("prefetchw %0" ::"m"(*line));  // GCC's builtin is a prefetch for reading unless -mprfchw is given
#elif defined(__aarch64__)
  asm volatile("prfm pstl1keep, %0" ::"Q"(*line));
#endif
}

/// Prefetches a line that will be read soon. Not GCC's builtin: it deletes calls of functions that do nothing else.
inline void fetch_line([[maybe_unused]] const std::byte* line) {
#if defined(__x86_64__) || defined(__i386__)
  asm volatile("prefetcht0 %0" ::"m"(*line));
#elif defined(__aarch64__)
  asm volatile("prfm pldl1keep, %0" ::"Q"(*line));
#endif
}

/// The sending end: fills the peer's channel.
class TxRing {
 public:
  /// Attaches to the peer's channel. `strict`: the two processes have no membarrier between them. Every store that the
  /// peer's sleep depends on is then sequentially consistent (a full fence per message on x86). `taken`: the number of
  /// the next message from the peer, see is_answered(); nullptr: there are none.
  void attach(Channel* channel, bool strict, const std::uint64_t* taken = nullptr) {
    *this = TxRing();
    channel_ = channel;
    strict_ = strict;
    taken_ = taken;
    next_ = &channel->lines[0];
  }
  bool attached() const { return channel_ != nullptr; }
  /// Returns true if the receiver wrote an impossible value into `consumed`.
  bool broken() const { return broken_; }

  /// Returns the next line, or nullptr: no room. The caller fills it and then publishes it.
  Line* line() { return has_line() || (refresh() && has_line()) ? next_ : nullptr; }

  /// Returns room for `size` contiguous bytes in the data ring, or nullptr. They end at the end of a line.
  std::byte* data(std::size_t size, Kind kind) {
    const std::size_t space = space_for(size, kind);
    if (!room(space) || (named(kind) && line() == nullptr)) return nullptr;
    place_ = skipped(space) != 0 ? 0 : at_ + gap_before(kind);
    start_ = kind == Kind::bulk ? 0 : std::min(record_size(size, kind) - size, latest_start);
    return channel_->data + place_ + start_;
  }

  /// Returns how many bytes of the ring data() needs.
  std::size_t space_for(std::size_t size, Kind kind) const { return gap_before(kind) + record_size(size, kind); }

  /// Returns true if there is room for a line (space = 0), or for the result of space_for().
  bool room(std::size_t space) {
    assert(space <= largest_record);
    if (space == 0) return line() != nullptr;
    return fits(space) || (refresh() && fits(space));
  }

  /// Publishes the line that line() gave: its payload holds a packet of `size` bytes.
  void publish_small(std::size_t size) { publish_line(size); }

  /// Writes and publishes, in the next lines, a packet that is too long for one line. Returns false if too few lines
  /// are free: the packet then goes to the data ring.
  bool put_in_lines(const void* head, std::size_t head_size, const void* body, std::size_t body_size) {
    const std::size_t size = head_size + body_size, count = lines_for(size);
    assert(size > line_payload && size <= largest_in_lines);
    Line* const line = next_;
    Line* next = line + count;
    const auto at = static_cast<std::size_t>(line - channel_->lines);
    std::size_t taken = count;
    if (next >= end_of_lines(*channel_)) [[unlikely]] {
      next = &channel_->lines[0];
      taken = line_count - at;
    }
    if (!has_lines(taken) && !(refresh() && has_lines(taken))) [[unlikely]]
      return false;
    std::byte* const to = reinterpret_cast<std::byte*>(line) + start_in_lines(size);
    copy_some(to, head, head_size);
    copy_some(to + head_size, body, body_size);
    for (std::size_t i = 1; i < count; ++i) holds_bytes_[at + i] = true;
    some_hold_bytes_ = true;
    publish_line(size, line, next, taken);
    // The next message is often as long: see claim_next().
    for (std::size_t i = 1; i < count; ++i) claim_line(reinterpret_cast<const std::byte*>(next + i));
    return true;
  }

  /// Publishes the first `size` bytes of the room that data() gave last, for the kind that data() was asked for.
  void publish_data(std::size_t size, Kind kind, Place place) {
    const std::size_t record = round_to_line(start_ + size);
    const std::size_t end = place_ + record == data_size ? 0 : place_ + record;
    const bool chain = kind == Kind::packet && fits(record + line_size);
    if (chain) word_at(*channel_, end).store(0, std::memory_order_relaxed);  // before the receiver looks there
    const std::size_t from = std::exchange(at_, end);
    head_ += static_cast<std::uint32_t>((place_ >= from ? place_ - from : data_size - from) + record);
    if (named(kind)) {
      const auto flags = static_cast<std::uint64_t>(kind) | (chain ? chained : 0) | start_ << 8;
      const Descriptor descriptor{static_cast<std::uint32_t>(place_), static_cast<std::uint32_t>(size), flags, place};
      std::memcpy(next_->payload, &descriptor, sizeof descriptor);
      publish_line(names_a_record);
    } else {
      store_for_sleeper(word_at(*channel_, place_), record_word(number_, size, kind, chain, start_), strict_);
      if (place_ != from) {
        store_for_sleeper(word_at(*channel_, from), record_word(number_, 0, Kind::skip, false), strict_);
      }
      ++number_;
    }
    chain_ = chain;
    end_ = from < front_size && at_ >= front_size && turns(record) ? at_ : data_size;
    if (chain) claim_next(record);
  }

  /// Returns true, once, if a stream would gain from all of the ring: the caller populates the channel, then whole().
  bool wants_whole() {
    if (extent_ != Extent::wanted) return false;
    extent_ = Extent::asked;
    return true;
  }
  /// Reports that all of the channel has memory.
  void whole() { extent_ = Extent::whole; }

  /// Asks the receiver to ring when it makes room; see Channel::starved.
  void set_starved(bool starved) { store_for_sleeper(channel_->starved, starved ? 1u : 0u, strict_); }

 private:
  /// What of the channel has memory: the front, or all. Between: a stream wants all, and the caller has been asked.
  enum class Extent : std::uint8_t { front, wanted, asked, whole };

  bool has_line() const { return lines_sent_ - lines_free_ < line_count; }
  bool has_lines(std::size_t count) const { return lines_sent_ - lines_free_ + count <= line_count; }
  /// Returns true if a line announces the next record in the data ring; otherwise the record's own word does.
  bool named(Kind kind) const { return kind == Kind::bulk || !chain_; }
  /// The receiver watches the empty word until it has read the line that names the piece: no data may lie there.
  std::size_t gap_before(Kind kind) const { return kind == Kind::bulk && chain_ ? line_size : 0; }

  void publish_line(std::size_t length) {
    Line* const next = next_ + 1;
    publish_line(length, next_, next == end_of_lines(*channel_) ? &channel_->lines[0] : next, 1);
    claim_line_ahead();
  }
  /// Publishes `line`. `next` is the line for the message after it.
  void publish_line(std::size_t length, Line* line, Line* next, std::size_t taken) {
    if (some_hold_bytes_) [[unlikely]]
      empty(*next);  // before the receiver looks there
    next_ = next;
    lines_sent_ += static_cast<std::uint32_t>(taken);
    store_for_sleeper(line->word, line_word(number_++, length), strict_);
  }

  /// Prepares a line for the receiver, which will look there: its word must not be that of a future message. A line
  /// that the receiver has not read yet holds a word, because the lines that it frees end with a message.
  void empty(Line& line) {
    bool& holds_bytes = holds_bytes_[&line - channel_->lines];
    if (!holds_bytes) return;
    holds_bytes = false;
    line.word.store(0, std::memory_order_relaxed);
  }
  /// Claims a line some messages ahead. Otherwise few lines of a stream would be on their way to the sender's cache at
  /// once: the sender's other stores fill the processor's store queue, which drains in order.
  void claim_line_ahead() const {
    const Line* ahead = next_ + lines_claimed;
    if (ahead >= end_of_lines(*channel_)) ahead -= line_count;
    claim_line(reinterpret_cast<const std::byte*>(ahead));
  }

  /// Returns how many bytes stay unused before a record: 0, or all up to the end of the ring.
  std::size_t skipped(std::size_t record) const { return at_ + record > end_ ? data_size - at_ : 0; }
  bool fits(std::size_t record) const { return (head_ - tail_) + skipped(record) + record <= data_size; }

  /// Returns whether the next record begins the ring again. Called where a record has left the front of the ring.
  [[gnu::noinline]] bool turns(std::size_t record) {
    const bool answered = is_answered(record);
    if (!answered && extent_ == Extent::front) extent_ = Extent::wanted;
    return answered || extent_ != Extent::whole;
  }

  /// Returns true if packets are short and answered one by one. They stay in the front of the ring, in the caches next
  /// to the cores. A stream uses all of the ring: stores to lines that the receiver has just read are slower.
  bool is_answered(std::size_t record) {
    const std::uint64_t sent = number_ - std::exchange(sent_before_, number_);
    const std::uint64_t taken = taken_ == nullptr ? 0 : *taken_ - std::exchange(taken_before_, *taken_);
    if (record > most_claimed || taken < sent / 2) return false;
    refresh();
    return head_ - tail_ <= most_in_front;
  }
  static constexpr std::size_t most_claimed = 4096 + line_size, lines_claimed = 6;
  static constexpr std::size_t most_in_front = 2 * most_claimed;
  // A record that begins the ring again finds room, however long it is, once the receiver has taken what is there.
  static_assert(std::max(most_in_front, data_told) + (data_size - front_size) + largest_record <= data_size);

  /// Claims the lines of the next packet, which is often as long as the last one, while no receiver waits for them. Not
  /// for a long packet: the way it is copied claims the lines itself, and claiming them twice was slower.
  void claim_next(std::size_t record) const {
    if (record > most_claimed || !fits(record)) return;
    const std::byte* const from = channel_->data + (skipped(record) != 0 ? 0 : at_);
    for (std::size_t at = 0; at <= record; at += line_size) claim_line(from + at);
  }

  /// Reads the receiver's progress. Returns false if there is none, or if it is impossible (see broken()).
  bool refresh() {
    const std::uint64_t now = channel_->consumed.load(std::memory_order_seq_cst);
    const auto lines = static_cast<std::uint32_t>(now), bytes = static_cast<std::uint32_t>(now >> 32);
    if (lines == lines_free_ && bytes == tail_) return false;
    if (lines - lines_free_ > lines_sent_ - lines_free_ || bytes - tail_ > head_ - tail_ || bytes % line_size != 0) {
      broken_ = true;
      return false;
    }
    lines_free_ = lines;
    tail_ = bytes;
    return true;
  }

  Channel* channel_ = nullptr;
  Line* next_ = nullptr;          ///< the next line to fill.
  std::uint64_t number_ = 1;      ///< of the next message.
  std::uint32_t lines_sent_ = 0;  ///< lines published, modulo 2^32 (as are the three counters below).
  std::uint32_t lines_free_ = 0;  ///< lines free again, as last published by the receiver.
  bool strict_ = false;
  bool some_hold_bytes_ = false;
  bool chain_ = true;  ///< an empty word lies at at_, and the receiver watches it
  bool broken_ = false;
  Extent extent_ = Extent::front;
  std::uint32_t head_ = 0;                        ///< bytes of the data ring ever used, skipped ends included.
  std::uint32_t tail_ = 0;                        ///< bytes of it free again.
  std::size_t at_ = 0;                            ///< where the last record ended.
  std::size_t end_ = data_size;                   ///< where the ring ends for the next record.
  std::size_t place_ = 0;                         ///< what data() gave last: at_, a line behind it, or the start.
  std::size_t start_ = 0;                         ///< where in that record the bytes begin.
  const std::uint64_t* taken_ = nullptr;          ///< the number of the next message from the peer.
  std::uint64_t sent_before_ = 0;                 ///< number_ when the front of the ring was last full.
  std::uint64_t taken_before_ = 0;                ///< *taken_ at that time.
  bool holds_bytes_[line_count + overhang] = {};  ///< the line holds payload where its word would be.
};

/// A record of the data ring.
struct Arrival {
  bool sound = false;  ///< false: the sender wrote a malformed record
  bool named = false;  ///< a line names it
  bool chain = false;  ///< a word lies behind it
  Kind kind = Kind::none;
  std::size_t record = 0;  ///< bytes of the ring that it takes
  std::span<const std::byte> bytes = {};
  Place place = {};
};

/// The receiving end: empties this process's own channel.
class RxRing {
 public:
  void attach(Channel* channel, bool strict) {
    *this = RxRing();
    channel_ = channel;
    strict_ = strict;
    next_ = &channel->lines[0];
    record_ = &word_at(*channel, 0);
  }
  void detach() { channel_ = nullptr; }
  bool attached() const { return channel_ != nullptr; }
  /// Returns where the number of the next message lies.
  const std::uint64_t* taken() const { return &number_; }

  /// Returns the word that announces the next message: that of its line, or in_data_ring. 0: no message yet. Loads two
  /// lines, which stay in this core's cache while no message arrives.
  std::uint64_t peek() const {
    const std::uint64_t line = next_->word.load(std::memory_order_seq_cst);
    if (number_of_line(line) == number_) return line;
    return is_record(record_->load(std::memory_order_seq_cst), number_) ? in_data_ring : 0;
  }
  bool empty() const { return peek() == 0; }
  /// Prefetches the line that peek() reads first.
  void expect() const { fetch_line(reinterpret_cast<const std::byte*>(next_)); }

  /// Returns the packet that peek() found in a line, in place. Empty: it is longer, or malformed.
  std::span<const std::byte> small(std::uint64_t mail) const {
    return {next_->payload, length_of_line(mail) <= line_payload ? length_of_line(mail) : 0};
  }

  /// Returns how many packets of the length of the first lie in consecutive lines, the first included; at most `most`.
  /// Counts no line beyond those that pop_each() may free at once.
  int count_small(std::uint64_t mail, int most) const {
    const auto left = static_cast<int>(lines_told - (reinterpret_cast<std::uintptr_t>(next_) / line_size) % lines_told);
    most = std::min(most, left);
    int count = 1;
    const std::uint64_t apart = line_word(1, 0) - line_word(0, 0);
    while (count < most && next_[count].word.load(std::memory_order_acquire) == (mail += apart)) ++count;
    return count;
  }
  /// Returns the packet that peek() found in several lines. Empty: it lies in the data ring, or is malformed.
  std::span<const std::byte> lines(std::uint64_t mail) const { return packet_in_lines(next_, mail); }

  /// Returns the next packet that was not shown yet, among the next `most` messages. Empty: there is none.
  std::span<const std::byte> show_next(RxCursor& cursor, std::uint64_t most) const {
    if (cursor.number() < number_) cursor = RxCursor(*channel_, next_, record_, number_, at_);
    return cursor.number() - number_ < most ? cursor.next() : std::span<const std::byte>();
  }

  /// Returns the record that peek() found. May be called again for a record that stays in the ring.
  Arrival large(std::uint64_t mail) {
    const bool is_named = mail != in_data_ring;
    const Said said = is_named ? named(mail) : announced();
    const std::size_t record = round_to_line(said.start + said.length);
    if (!is_sound(said.kind, said.start, said.length) || at_ + record > data_size) return {};
    return {true,      is_named, said.chain, said.kind, record, {channel_->data + at_ + said.start, said.length},
            said.place};
  }

  /// Frees a record. Returns true if progress was published, so that a starved sender may have to be woken.
  bool pop(const Arrival& arrival) {
    const std::size_t record = arrival.record;
    assert(at_ + record <= data_size);
    bytes_ += static_cast<std::uint32_t>(record);
    at_ = at_ + record == data_size ? 0 : at_ + record;
    record_ = arrival.chain ? &word_at(*channel_, at_) : &no_record;
    const bool told = arrival.named ? pop_line() : (++number_, false);
    return (bytes_ - static_cast<std::uint32_t>(told_ >> 32) >= data_told && tell()) || told;
  }
  /// Free packets that lie inside one line each; at most the number that count_small() returned. Return as pop().
  bool pop_line() { return pop_each(1); }
  bool pop_each(int count) {
    number_ += static_cast<std::uint64_t>(count);
    next_ += count;
    return reinterpret_cast<std::uintptr_t>(next_) % (lines_told * line_size) == 0 && end_quarter();
  }
  /// Frees a packet that lies in several lines. Returns as pop().
  bool pop_lines(std::size_t size) {
    constexpr std::uintptr_t quarter = lines_told * line_size;
    const auto before = reinterpret_cast<std::uintptr_t>(next_);
    ++number_;
    next_ += lines_for(size);
    return before / quarter != reinterpret_cast<std::uintptr_t>(next_) / quarter && end_quarter();
  }

  /// Publishes the progress. Returns false if there is nothing new.
  bool tell() {
    const std::uint64_t now = consumed_word(lines(), bytes_);
    if (now == told_) return false;
    told_ = now;
    store_for_sleeper(channel_->consumed, now, strict_);
    return true;
  }

  /// Returns true if the sender waits for room.
  bool sender_starved() const { return channel_->starved.load(std::memory_order_seq_cst) != 0; }

 private:
  /// What the sender says of the next record. Kind none: malformed. The length is not checked yet.
  struct Said {
    Kind kind = Kind::none;
    bool chain = false;
    std::size_t start = 0;
    std::size_t length = 0;
    Place place = {};
  };

  /// Reads the description in a line.
  Said named(std::uint64_t word) {
    Descriptor descriptor;
    std::memcpy(&descriptor, next_->payload, sizeof descriptor);
    if (length_of_line(word) != names_a_record || descriptor.kind > 0xffff) return {};
    if (record_ != &no_record && descriptor.offset == at_ + line_size) {
      bytes_ += static_cast<std::uint32_t>(line_size);
      at_ += line_size;
    } else if (descriptor.offset != at_) {
      if (descriptor.offset != 0) return {};
      skip_to_start();
    }
    return {kind_of(descriptor.kind), is_chained(descriptor.kind), descriptor.kind >> 8, descriptor.length,
            descriptor.place};
  }

  /// Reads the record's own word, here or at the start of the ring.
  Said announced() {
    std::uint64_t word = record_->load(std::memory_order_acquire);
    if (kind_of(word) == Kind::skip && at_ != 0) {
      skip_to_start();
      record_ = &word_at(*channel_, 0);
      word = record_->load(std::memory_order_acquire);
    }
    if (!is_record(word, number_) || kind_of(word) != Kind::packet) return {};
    return {Kind::packet, is_chained(word), start_of(word), length_of(word), {}};
  }

  /// Handles the end of a quarter of the lines: wraps around if needed and publishes the progress.
  [[gnu::noinline]] bool end_quarter() {
    if (next_ >= end_of_lines(*channel_)) {
      next_ = &channel_->lines[0];
      ++laps_;
    }
    return tell();
  }

  /// Returns the number of lines consumed, modulo 2^32.
  std::uint32_t lines() const {
    return laps_ * static_cast<std::uint32_t>(line_count) + static_cast<std::uint32_t>(next_ - channel_->lines);
  }

  void skip_to_start() {
    bytes_ += static_cast<std::uint32_t>(data_size - at_);
    at_ = 0;
  }

  Channel* channel_ = nullptr;
  const Line* next_ = nullptr;                          ///< the next line to read
  const std::atomic<std::uint64_t>* record_ = nullptr;  ///< the word of the next record, at at_
  std::uint64_t number_ = 1;                            ///< of the next message
  std::size_t at_ = 0;
  std::uint32_t bytes_ = 0;  ///< bytes of the data ring consumed, modulo 2^32
  std::uint32_t laps_ = 0;   ///< completed rounds of the line ring
  std::uint64_t told_ = 0;   ///< the current value of `consumed`
  bool strict_ = false;
};

}  // namespace canele::drivers::shm
