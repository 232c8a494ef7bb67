// SPDX-License-Identifier: BSD-3-Clause
//
// What travels: the tags of messages, the head of bulk data, the published address, the terms in the handshake.
//
// Used by the psm2 driver. Pure functions: any thread. A tag says what a message is, and how many of the receiver's
// messages its sender has taken. It contains nothing of the engine.
//
//   tag    0: magic (24 bits) | kind (8)      1: messages taken from you so far      2: flags
//
//   bulk   a head {transfer id, offset, size} in a message of its own, then one message that is the data. 24 bytes is
//   what
//          libpsm2 still carries in the message's own slot. Rejected: transfer id and offset in the tag: 128 bits
//          in 96.
//
//   address, 64 bytes:
//      0 u32 magic   4 u16 version   6 u16 zero   8 u64 endpoint   16 u64 host   24 u64 incarnation
//     32 i32 pid   36 u32 flags   40 name of the control socket, 16 bytes   56 u32 user   60 u32 zero
#pragma once

#include <psm2.h>
#include <psm2_mq.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "drivers/driver.hpp"
#include "drivers/net/bytes.hpp"

namespace canele::drivers::psm2 {

/// Version of these formats.
inline constexpr std::uint16_t format_version = 2;

enum class Kind : std::uint32_t { handshake = 1, packet, bulk_head, bulk_data, taken, bye, last = bye };
inline constexpr std::uint32_t tag_magic = 0xca2e1e00;

/// Flags of a tag.
inline constexpr std::uint32_t flag_began = 1;    ///< handshakes: the sender began it
inline constexpr std::uint32_t flag_offered = 2;  ///< short, but it has to be fetched

inline psm2_mq_tag_t make_tag(Kind kind, std::uint32_t taken, std::uint32_t flags) {
  psm2_mq_tag_t tag = {};
  tag.tag0 = tag_magic | static_cast<std::uint32_t>(kind);
  tag.tag1 = taken;
  tag.tag2 = flags;
  return tag;
}
/// Reads a tag. Returns false if it is no tag of this driver.
inline bool read_tag(const psm2_mq_tag_t& tag, Kind* kind) {
  const std::uint32_t low = tag.tag0 & 0xffu;
  *kind = static_cast<Kind>(low);
  return (tag.tag0 & ~0xffu) == tag_magic && low >= 1 && low <= static_cast<std::uint32_t>(Kind::last);
}

struct BulkHead {
  std::uint64_t transfer_id = 0, offset = 0, size = 0;
};
inline constexpr std::size_t bulk_head_size = 24;
inline void pack(const BulkHead& head, std::byte* to) {
  net::write_le(to, head.transfer_id, 8);
  net::write_le(to + 8, head.offset, 8);
  net::write_le(to + 16, head.size, 8);
}
inline BulkHead unpack_head(const std::byte* from) {
  return {net::read_le64(from), net::read_le64(from + 8), net::read_le64(from + 16)};
}

using ControlName = std::array<std::byte, 16>;

/// Where a rank is reached.
struct Whereabouts {
  psm2_epid_t endpoint = 0;
  std::uint64_t host =
      0;  ///< processes with equal values can connect through shared memory (see connect_coordinator.hpp)
  std::uint64_t incarnation = 0;
  std::int32_t pid = 0;
  std::uint32_t user = 0;    ///< libpsm2's files are for one user
  bool memory_only = false;  ///< its libpsm2 uses no hardware
  ControlName control = {};
};
inline constexpr std::size_t address_size = 64;
inline constexpr std::uint32_t address_magic = 0x324d5350;  // "PSM2"

inline Address pack(const Whereabouts& where) {
  Address made(address_size);
  net::write_le(made.data(), address_magic, 4);
  net::write_le(made.data() + 4, format_version, 2);
  net::write_le(made.data() + 8, where.endpoint, 8);
  net::write_le(made.data() + 16, where.host, 8);
  net::write_le(made.data() + 24, where.incarnation, 8);
  net::write_le(made.data() + 32, static_cast<std::uint32_t>(where.pid), 4);
  net::write_le(made.data() + 36, where.memory_only ? 1 : 0, 4);
  std::copy(where.control.begin(), where.control.end(), made.begin() + 40);
  net::write_le(made.data() + 56, where.user, 4);
  return made;
}
/// Parses an address. Returns false if it is no address of this driver and version.
inline bool unpack(std::span<const std::byte> bytes, Whereabouts* where) {
  if (bytes.size() != address_size || net::read_le32(bytes.data()) != address_magic ||
      net::read_le16(bytes.data() + 4) != format_version) {
    return false;
  }
  where->endpoint = net::read_le64(bytes.data() + 8);
  where->host = net::read_le64(bytes.data() + 16);
  where->incarnation = net::read_le64(bytes.data() + 24);
  where->pid = static_cast<std::int32_t>(net::read_le32(bytes.data() + 32));
  where->memory_only = (net::read_le32(bytes.data() + 36) & 1) != 0;
  std::copy_n(bytes.data() + 40, where->control.size(), where->control.begin());
  where->user = net::read_le32(bytes.data() + 56);
  return where->pid > 0;
}

/// What the two ends tell each other in the handshake (its payload is protected against change).
struct Terms {
  std::uint32_t unacked_limit = 0;  ///< messages that the receiver of these terms may have in flight to their sender.
  std::int32_t pid = 0;             ///< the sender's process.
  std::uint64_t probe = 0;          ///< address of a number in the sender's memory, which shows that the sender lives.
  std::uint64_t probe_value = 0;    ///< that number.
  std::uint64_t largest = 0;        ///< longest packet that the sender takes, in bytes.
  static constexpr std::size_t size = 40;
};
inline std::array<std::byte, Terms::size> pack(const Terms& terms) {
  std::array<std::byte, Terms::size> made = {};
  net::write_le(made.data(), format_version, 2);
  net::write_le(made.data() + 4, terms.unacked_limit, 4);
  net::write_le(made.data() + 8, static_cast<std::uint32_t>(terms.pid), 4);
  net::write_le(made.data() + 16, terms.probe, 8);
  net::write_le(made.data() + 24, terms.probe_value, 8);
  net::write_le(made.data() + 32, terms.largest, 8);
  return made;
}
inline bool unpack(std::span<const std::byte> bytes, Terms* terms) {
  if (bytes.size() != Terms::size || net::read_le16(bytes.data()) != format_version) return false;
  terms->unacked_limit = net::read_le32(bytes.data() + 4);
  terms->pid = static_cast<std::int32_t>(net::read_le32(bytes.data() + 8));
  terms->probe = net::read_le64(bytes.data() + 16);
  terms->probe_value = net::read_le64(bytes.data() + 24);
  terms->largest = net::read_le64(bytes.data() + 32);
  return terms->unacked_limit > 0;
}

}  // namespace canele::drivers::psm2
