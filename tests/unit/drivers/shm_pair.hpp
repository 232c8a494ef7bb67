// SPDX-License-Identifier: BSD-3-Clause
//
// Both ends of a shared-memory ring, for tests: packets whose bytes follow from a number.
//
// Each test says in which threads it uses them. receive() checks every byte.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "drivers/shm/ring.hpp"

namespace canele::drivers::shm {

struct Packet {
  std::size_t size;
  std::uint64_t seed;
};

inline std::byte expected(std::uint64_t seed, std::size_t at) {
  return static_cast<std::byte>(seed * 131 + at * 7 + (at >> 8));
}

/// Returns the kind of a packet: pieces among packets, in runs of either.
inline Kind kind_for(const Packet& packet) { return packet.seed / 3 % 2 == 0 ? Kind::packet : Kind::bulk; }

/// Returns whether to use put_in_lines() if there is room: for two of three packets that may.
bool wants_lines(const Packet& packet) {
  return packet.size > line_payload && packet.size <= largest_in_lines && kind_for(packet) == Kind::packet &&
         packet.seed % 3 != 0;
}

struct Pair {
  std::unique_ptr<Channel> channel{new Channel()};
  TxRing out;
  RxRing in;
  /// `whole`: all of the data ring may be used. `taken`: see TxRing::attach().
  explicit Pair(bool strict = false, bool whole = true, const std::uint64_t* taken = nullptr) {
    out.attach(channel.get(), strict, taken);
    in.attach(channel.get(), strict);
    if (whole) out.whole();
  }

  bool send(const Packet& packet) { return (wants_lines(packet) && send_in_lines(packet)) || send_whole(packet); }

  bool send_in_lines(const Packet& packet) {
    std::byte bytes[largest_in_lines];
    for (std::size_t i = 0; i < packet.size; ++i) bytes[i] = expected(packet.seed, i);
    const std::size_t head = packet.seed % 40;
    return out.put_in_lines(bytes, head, bytes + head, packet.size - head);
  }

  bool send_whole(const Packet& packet) {
    const bool small = packet.size <= line_payload;
    Line* line = small ? out.line() : nullptr;
    std::byte* to = small ? (line ? line->payload : nullptr) : out.data(packet.size, kind_for(packet));
    if (to == nullptr) return false;
    for (std::size_t i = 0; i < packet.size; ++i) to[i] = expected(packet.seed, i);
    if (small) {
      out.publish_small(packet.size);
    } else {
      out.publish_data(packet.size, kind_for(packet), {packet.seed, ~packet.seed});
    }
    return true;
  }

  /// Returns false if there is no packet.
  bool receive(const Packet& packet) {
    const std::uint64_t mail = in.peek();
    if (mail == 0) return false;
    std::span<const std::byte> bytes = in.small(mail);
    const std::span<const std::byte> in_lines = in.lines(mail);
    Arrival arrival;
    if (!in_lines.empty()) {
      EXPECT_TRUE(bytes.empty());
      bytes = in_lines;
    } else if (bytes.empty()) {
      arrival = in.large(mail);
      EXPECT_TRUE(arrival.sound);
      EXPECT_EQ(arrival.kind, kind_for(packet));
      if (arrival.kind == Kind::bulk) {
        EXPECT_EQ(arrival.place.transfer_id, packet.seed);
        EXPECT_EQ(arrival.place.at, ~packet.seed);
      }
      bytes = arrival.bytes;
    }
    EXPECT_EQ(bytes.size(), packet.size);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) wrong += bytes[i] != expected(packet.seed, i);
    EXPECT_EQ(wrong, 0u) << "packet " << packet.seed << " of " << packet.size;
    if (arrival.sound) {
      in.pop(arrival);
    } else if (!in_lines.empty()) {
      in.pop_lines(in_lines.size());
    } else {
      in.pop_line();
    }
    return true;
  }
};

}  // namespace canele::drivers::shm
