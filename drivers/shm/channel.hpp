// SPDX-License-Identifier: BSD-3-Clause
//
// Channel: the layout of the memory that two processes share, to the byte.
//
// Used by the shm driver only. Threading: each word has one writer (named below), a thread of one process; the other
// process reads it. The shared lines are different: they belong to the engines of both processes.
//
// Everything that the other process writes is untrusted. Each shared word is loaded once into a local variable and
// checked there, and only the local variable is used.
//
// The receiver of a direction owns its channel (a sealed memfd) and lends it to the sender:
//
//     offset 0        128           256      2048                       10240      12288              274432
//     +------------+-------------+--------+--------+--------+-+----------+----------+-------------------+
//     | consumed   | starved     | shared | line 0 | line 1 |.| line 127 | overhang | data ring, 256 KiB|
//     | by receiver| by sender   | lines  |      the line ring           | 3 lines  | longer packets    |
//     +------------+-------------+--------+--------+--------+-+----------+----------+-------------------+
//     line: one cache line
//            +- word, 8 B ---------------------------+- payload, 56 B ------------------------------------+
//            | number 56 | length 8                  | a whole small packet, or a Descriptor              |
//            +- stored last, with release -----------+----------------------------------------------------+
//     packet of up to 248 bytes in the line ring: two to four lines, one word
//            +- word -+- gap -+- bytes ----- ... ----+- next word -+
//            | as above       | a packet, to the end | not of the number that comes next
//            +----------------+------------- ... ----+-------------+
//     packet in the data ring: whole cache lines
//            +- word, 8 B -------------------------------+- gap -+- bytes ----- ... -+- next word -+
//            | number 32 | start 8 | length 16 | kind 8  |       | a packet          | 0: empty    |
//            +- stored last, with release ---------------+-------+------------- ... -+-------------+
//
// Messages of a direction are numbered across both rings; the receiver looks in both for the next number. A packet
// therefore touches only its own cache lines: sender and receiver share no index in the common case. A line's word is
// valid when it has the next number. 2^56 numbers do not repeat, so no word is ever reset to zero.
//
// In the data ring, any bytes may lie where the next word will be. The sender therefore first stores an empty word
// behind each packet, and the packet says so (`chained`). The word stays empty until the next packet is there. The
// receiver watches that word until it moves elsewhere, so a bulk piece begins behind it. Without such a word (behind a
// piece, or for lack of room) the receiver looks at lines only, and a line names the next record. A line that held the
// second or a later part of a packet may hold any bytes, too. Before such a line becomes the next one, the sender
// stores an empty word there.
//
// A packet ends where its last line ends. A message of whole lines thus begins with a line, and its head ends in the
// line before. Copies by whole lines are faster.
//
// Rejected:
//  - head and tail indices: two more cache lines travel per message;
//  - a valid bit that the receiver clears: the line comes back to the sender dirty;
//  - slots of two lines, because hardware fetches lines in pairs: measured, slower one way;
//  - a line that names each packet: one more transfer, for which the next one waits. Measured: slower, most of all
//    between distant cores;
//  - a word before each bulk piece: the pieces do not begin at a page then. Measured: less bandwidth.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "drivers/driver.hpp"

namespace canele::drivers::shm {

inline constexpr std::uint32_t layout_version = 8;  ///< peers with another one are rejected
inline constexpr std::size_t line_size = 64;
inline constexpr std::size_t line_payload = 56;
inline constexpr std::size_t line_count = 128;
/// Largest packet in the line ring, in bytes.
inline constexpr std::size_t largest_in_lines = 4 * line_size - sizeof(std::uint64_t);
/// A packet that begins in the last lines may run over the ring's end; the next message is then in line 0. Each such
/// packet also uses line 127, so there is one at most.
inline constexpr std::size_t overhang = 3;
inline constexpr std::size_t data_size = 256 * 1024;
/// The front of the data ring: a record may begin there before the rest of the ring has memory.
inline constexpr std::size_t front_size = 64 * 1024;
inline constexpr std::size_t largest_packet = 16 * 1024;
inline constexpr int shared_line_count = 28;

/// The receiver publishes its progress each time that this many lines, or bytes of the data ring, are free again.
inline constexpr std::size_t lines_told = line_count / 4;
inline constexpr std::size_t data_told = 4 * 1024;

enum class Kind : std::uint8_t {
  none = 0,    ///< nothing yet
  packet = 1,  ///< a packet
  bulk = 2,    ///< a piece of a bulk transfer
  skip = 3     ///< the record did not fit before the end: it lies at the start
};
/// Flag beside the kind: an empty word lies behind the record.
inline constexpr std::uint8_t chained = 0x80;

/// Returns the bytes that precede the payload in the data ring. A bulk piece has none, so that it usually begins a
/// page.
constexpr std::size_t record_head(Kind kind) { return kind == Kind::bulk ? 0 : sizeof(std::uint64_t); }

constexpr std::size_t round_to_line(std::size_t size) { return (size + line_size - 1) & ~(line_size - 1); }

/// Returns the bytes that a record with `size` bytes of payload takes in the data ring.
constexpr std::size_t record_size(std::size_t size, Kind kind) { return round_to_line(record_head(kind) + size); }

/// A packet begins in the line of its word, with what its receiver reads first; it starts there at this offset at the
/// latest.
inline constexpr std::size_t latest_start = 48;

/// Return the number of lines that a packet of `size` bytes takes in the line ring, and where in them it begins.
constexpr std::size_t lines_for(std::size_t size) { return (size + sizeof(std::uint64_t) + line_size - 1) / line_size; }
constexpr std::size_t start_in_lines(std::size_t size) {
  const std::size_t before = lines_for(size) * line_size - size;
  return before < latest_start ? before : latest_start;
}
static_assert(lines_for(largest_in_lines) == overhang + 1 && largest_in_lines < 0xff);

/// A bulk piece may have to leave an empty word where it is.
inline constexpr std::size_t largest_record = record_size(largest_packet, Kind::packet);
static_assert(largest_record >= record_size(largest_packet, Kind::bulk) + line_size);

// After everything is consumed, the last bytes may still be unpublished. The longest record must find room then, even
// if it has to skip the end of the ring. Otherwise sender and receiver would wait for each other.
static_assert(front_size - data_told >= 2 * largest_record);
static_assert((line_count & (line_count - 1)) == 0);
static_assert(data_size % line_size == 0);

/// The transfer that a bulk piece belongs to, and its position in it.
struct Place {
  std::uint64_t transfer_id = 0, at = 0;
};

/// Payload of a line that names a record.
struct Descriptor {
  std::uint32_t offset;  ///< of the record: where the previous one ended, behind the empty word there, or 0.
  std::uint32_t length;  ///< number of payload bytes.
  std::uint64_t kind;    ///< packet or bulk, with `chained`; the 8 bits above say where in the record the bytes start.
  Place place;           ///< bulk only.
};
static_assert(sizeof(Descriptor) <= line_payload);
/// Stands in a line's word instead of a length.
inline constexpr std::size_t names_a_record = 0xff;
/// What the receiver finds where no line announces the next message. It looks like the word of a line that no message
/// has and that holds no packet.
inline constexpr std::uint64_t in_data_ring = names_a_record;

struct alignas(line_size) Line {
  std::atomic<std::uint64_t> word;
  std::byte payload[line_payload];
};
static_assert(sizeof(Line) == line_size);

struct alignas(4096) Channel {
  /// Lines (low half) and bytes of the data ring consumed since the start, both modulo 2^32. The receiver seldom writes
  /// it; the sender reads it when it sees no room.
  alignas(128) std::atomic<std::uint64_t> consumed;
  /// 1 while the sender waits for room and wants its doorbell rung. Written by the sender.
  alignas(128) std::atomic<std::uint32_t> starved;
  /// Changed by both, as the engine of the receiver decides; see Driver::shared_lines().
  alignas(256) SharedLine shared[shared_line_count];
  alignas(2048) Line lines[line_count + overhang];
  alignas(4096) std::byte data[data_size];
};
static_assert(offsetof(Channel, shared) == 256 && offsetof(Channel, lines) == 2048 &&
              offsetof(Channel, data) == 12288 && sizeof(Channel) == 12288 + data_size);

/// Bytes of a channel that have memory from the start. The sender populates the rest for its first stream.
inline constexpr std::size_t backed_size = offsetof(Channel, data) + front_size + 5 * 4096;
static_assert(front_size + largest_record + line_size <= backed_size - offsetof(Channel, data));

/// One page per process, lent to all peers read-only, with the broadcast segment (broadcast_segment.hpp) behind it.
/// `sleep` is 0 while the process is awake, else the number of its current sleep. It is one word per process, not a
/// flag per pair. Falling asleep is thus one store for any number of peers, and no peer can forge it for another. The
/// number (not a bit) lets each sender ring once per sleep without writing here.
struct alignas(4096) SleepPage {
  std::atomic<std::uint32_t> sleep;
};
static_assert(sizeof(SleepPage) == 4096);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);

constexpr std::uint64_t line_word(std::uint64_t number, std::size_t length) { return number << 8 | length; }
constexpr std::uint64_t number_of_line(std::uint64_t word) { return word >> 8; }
constexpr std::size_t length_of_line(std::uint64_t word) { return word & 0xff; }

constexpr std::uint64_t record_word(std::uint64_t number, std::size_t length, Kind kind, bool chain,
                                    std::size_t start = sizeof(std::uint64_t)) {
  return number << 32 | std::uint64_t{start} << 24 | std::uint64_t{length} << 8 | static_cast<std::uint64_t>(kind) |
         (chain ? chained : 0);
}
constexpr Kind kind_of(std::uint64_t word) { return static_cast<Kind>(word & 0xff & ~chained); }
constexpr bool is_chained(std::uint64_t word) { return (word & chained) != 0; }
constexpr std::size_t length_of(std::uint64_t word) { return word >> 8 & 0xffff; }
constexpr std::size_t start_of(std::uint64_t word) { return word >> 24 & 0xff; }
/// Returns true if `word` belongs to the record with that number. An empty word belongs to none, even when the numbers
/// wrap.
constexpr bool is_record(std::uint64_t word, std::uint64_t number) {
  return word >> 32 == (number & 0xffffffff) && kind_of(word) != Kind::none;
}

constexpr std::uint64_t consumed_word(std::uint32_t lines, std::uint32_t bytes) {
  return std::uint64_t{bytes} << 32 | lines;
}

/// Returns the word at `place`, where a record begins or may begin.
inline std::atomic<std::uint64_t>& word_at(Channel& channel, std::size_t place) {
  return *reinterpret_cast<std::atomic<std::uint64_t>*>(channel.data + place);
}

/// Returns the end of the line ring.
inline Line* end_of_lines(Channel& channel) { return &channel.lines[line_count]; }

/// What the receiver watches while no word lies behind the last record.
inline const std::atomic<std::uint64_t> no_record{0};

}  // namespace canele::drivers::shm
