// SPDX-License-Identifier: BSD-3-Clause
//
// Area: the layout of the memory that two processes share, to the byte.
//
// Who: the shm driver only. Threads: one writer per word (named below), in one process; the other process reads. But
//      the shared lines belong to the engines.
// Surprise: whatever the other process writes is hostile. Each shared word is loaded once into a local, checked there,
//      and only the local is used.
//
// The receiver of a direction owns its area (a sealed memfd) and lends it to the sender:
//
//     offset 0        128           1024     4096                      12288                             61440
//     +------------+-------------+--------+--------+--------+-+----------+-----------------------------------+
//     | consumed   | starved     | shared | line 0 | line 1 |.| line 127 | data ring, 48 KiB                 |
//     | by receiver| by sender   | lines  |      the line ring           | packets of more than 56 bytes     |
//     +------------+-------------+--------+--------+--------+-+----------+-----------------------------------+
//     line: one cache line
//            +- word, 8 B ---------------------------+- payload, 56 B ------------------------------------+
//            | generation 32 | length 24 | kind 8    | a whole small packet, or a Descriptor              |
//            +- stored last, with release -----------+----------------------------------------------------+
//
// A line is valid when its generation is that of the lap the receiver is in: nothing is ever zeroed, and sender and
// receiver share no index in the common case. Rejected: head and tail indices (two more cache lines travel per
// message); a valid bit that the receiver clears (the line comes back to the sender dirty); slots of two lines, against
// the hardware's habit of fetching lines in pairs (measured: 78 instead of 72 ns one way).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "drivers/driver.hpp"

namespace canele::drivers::shm {

inline constexpr std::uint32_t layout_version = 2;  ///< peers with another one are refused
inline constexpr std::size_t line_size = 64;
inline constexpr std::size_t line_payload = 56;
inline constexpr std::size_t line_count = 128;
inline constexpr std::size_t data_size = 48 * 1024;
inline constexpr std::size_t largest_packet = 16 * 1024;
inline constexpr int shared_line_count = 16;

/// The receiver tells its progress each time this many lines, or bytes of the data ring, are free again.
inline constexpr std::size_t lines_told = line_count / 4;
inline constexpr std::size_t data_told = data_size / 4;

// With everything consumed and the last quarter untold, the longest packet must still find room, even if it has to
// skip the end of the ring: or sender and receiver would wait for each other.
static_assert(data_size - data_told >= 2 * largest_packet);
static_assert((line_count & (line_count - 1)) == 0);
static_assert(data_size % line_size == 0);

enum class Kind : std::uint8_t {
  small = 1,   ///< the payload is the packet
  packet = 2,  ///< Descriptor: a packet in the data ring
  bulk = 3     ///< Descriptor: a piece of a bulk transfer in the data ring
};

/// Payload of a line that points into the data ring.
struct Descriptor {
  std::uint32_t offset;  ///< where in the data ring; a multiple of line_size; the piece does not wrap
  std::uint32_t zero;
  std::uint64_t key;  ///< bulk: the transfer
  std::uint64_t at;   ///< bulk: position in the transfer
};
static_assert(sizeof(Descriptor) <= line_payload);

struct alignas(line_size) Line {
  std::atomic<std::uint64_t> word;
  std::byte payload[line_payload];
};
static_assert(sizeof(Line) == line_size);

struct alignas(4096) Area {
  /// Lines consumed since the start. Written by the receiver, seldom; read by the sender when it sees no room.
  alignas(128) std::atomic<std::uint64_t> consumed;
  /// 1 while the sender waits for room and wants its doorbell rung. Written by the sender.
  alignas(128) std::atomic<std::uint32_t> starved;
  /// Changed by both, as the engine of the receiver decides; see Driver::shared_lines().
  alignas(1024) SharedLine shared[shared_line_count];
  alignas(4096) Line lines[line_count];
  alignas(4096) std::byte data[data_size];
};
static_assert(offsetof(Area, shared) == 1024 && offsetof(Area, lines) == 4096 && offsetof(Area, data) == 12288 &&
              sizeof(Area) == 61440);

/// One per process, lent to all peers read-only: 0 while the process is awake, else the number of its current sleep.
/// One word per process rather than a flag per pair: falling asleep is one store whatever the number of peers, and no
/// peer can forge it for another. The number (not a bit) lets each sender ring once per sleep without writing here.
struct alignas(4096) ParkPage {
  std::atomic<std::uint32_t> sleep;
};
static_assert(sizeof(ParkPage) == 4096);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);

constexpr std::uint64_t make_word(std::uint32_t generation, std::size_t length, Kind kind) {
  return std::uint64_t{generation} << 32 | std::uint64_t{length} << 8 | static_cast<std::uint64_t>(kind);
}
constexpr std::uint32_t generation_of(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); }
constexpr std::size_t length_of(std::uint64_t word) { return word >> 8 & 0xffffff; }
constexpr std::uint8_t kind_of(std::uint64_t word) { return word & 0xff; }

/// Generation of the line with running number `count`. Memory starts as zeros, so the first lap has 1.
constexpr std::uint32_t generation_at(std::uint64_t count) {
  return static_cast<std::uint32_t>(count / line_count + 1);
}

constexpr std::size_t round_to_line(std::size_t size) { return (size + line_size - 1) & ~(line_size - 1); }

}  // namespace canele::drivers::shm
