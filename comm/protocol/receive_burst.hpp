// SPDX-License-Identifier: BSD-3-Clause
//
// Fast path of small messages that lie in a row: the steps of receive_eager.hpp, with the work that the messages share
// done once.
//
// Any thread may use it under the engine's lock; DriverInstance does.
//
// Half of what a small message costs its receiver is the same for the next one: to come here, the peer, the session,
// the counters. Any packet that is not as usual is handled as a single packet.
#pragma once

#include "comm/protocol/receive_packet.hpp"

namespace canele::comm::receive_path {

class ReceiveBurst {
 public:
  /// Takes packets that are all `length` bytes long.
  ReceiveBurst(Context& context, Peer& peer, std::size_t length) : context_(context), peer_(peer), length_(length) {}
  ReceiveBurst(const ReceiveBurst&) = delete;
  ReceiveBurst& operator=(const ReceiveBurst&) = delete;

  /// Takes the next packet. Returns the verdict on it.
  [[gnu::always_inline]] Verdict take(Payload bytes) CANELE_UNDER_LOCK {
    wire::Head head;
    if (!wire::peek(bytes, head)) [[unlikely]] {
      counts_.kept();
      return Verdict::violation("a packet is shorter than the head of a chunk");
    }
    if (!wire::is_one_eager(head, length_)) [[unlikely]] {
      number_ = no_session;
      counts_.kept();
      return other_packet(context_, peer_, head, bytes);
    }
    if (head.session != number_) [[unlikely]] {
      if (const Verdict v = find_session(peer_, head, session_); !v.is_ok()) {
        counts_.kept();
        return v;
      }
      number_ = head.session;
    }
    const Payload payload = bytes.subspan(sizeof head);
    if (const Verdict v = check_number(context_, peer_, head, wire::credit_cost_of_eager(payload.size())); !v.is_ok())
        [[unlikely]] {
      counts_.kept();
      return v;
    }
    return match_eager(context_, peer_, *session_, {head.tag, payload, Handle::none}, counts_);
  }

  /// Counts the packets. Called once, after the last of them.
  void count(std::uint64_t packets) {
    const std::uint64_t delivered = packets - counts_.others;
    peer_.counters.add(Counter::packets_received, packets);
    peer_.counters.add(Counter::messages_received, delivered);
    peer_.counters.add(Counter::bytes_received, delivered * (length_ - sizeof(wire::Head)) - counts_.missing);
    context_.counters.add(Counter::posted_matches, delivered);
  }

 private:
  /// Counts exceptions only. The usual case is that one packet is one message that has met its receive, and fits.
  struct Counts {
    std::uint64_t others = 0, missing = 0;
    void kept() { ++others; }
    void met_posted() {}
    void delivered(std::uint64_t bytes, std::uint64_t sent) {
      if (bytes != sent) [[unlikely]]
        missing += sent - bytes;
    }
  };
  static constexpr std::uint32_t no_session = ~std::uint32_t{0};

  Context& context_;
  Peer& peer_;
  const std::size_t length_;
  Session* session_ = nullptr;
  std::uint32_t number_ = no_session;  ///< by which the last message named session_
  Counts counts_;
};

}  // namespace canele::comm::receive_path
