// SPDX-License-Identifier: BSD-3-Clause
//
// The frames on a tcp connection after the handshake.
//
//    0 u32 length of the payload   4 u8 kind   5 u8 zero   6 u16 magic    packet: payload follows, 1 … max_packet bytes
//    8 u64 transfer id  16 u64 offset                                     bulk only: payload follows, 1 … 1 GiB
//
// Used by sender and receiver. Pure functions: any thread. The magic number carries no information: it reveals within
// one frame that the stream has lost synchronisation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "drivers/net/bytes.hpp"

namespace canele::drivers::tcp {

inline constexpr std::size_t receive_buffer = 28 * 1024;
inline constexpr std::size_t packet_header = 8;
inline constexpr std::size_t bulk_header = 24;
inline constexpr std::size_t max_packet = receive_buffer - packet_header;
inline constexpr std::size_t max_bulk = std::size_t{1} << 30;
inline constexpr std::size_t max_inline = 64;
inline constexpr std::uint16_t frame_magic = 0xca4e;

enum class Kind : std::uint8_t { packet = 1, bulk = 2 };

struct FrameHeader {
  std::byte bytes[bulk_header];
  std::size_t size;
};

inline FrameHeader make_header(Kind kind, std::size_t length, std::uint64_t transfer_id = 0, std::uint64_t offset = 0) {
  FrameHeader made;
  net::write_le(made.bytes,
                length | std::uint64_t{static_cast<std::uint8_t>(kind)} << 32 | std::uint64_t{frame_magic} << 48, 8);
  made.size = packet_header;
  if (kind == Kind::bulk) {
    net::write_le(made.bytes + 8, transfer_id, 8);
    net::write_le(made.bytes + 16, offset, 8);
    made.size = bulk_header;
  }
  return made;
}

}  // namespace canele::drivers::tcp
