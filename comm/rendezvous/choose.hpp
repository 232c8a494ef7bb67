// SPDX-License-Identifier: BSD-3-Clause
//
// Chooses how the data of a large message moves. Pure functions of a few facts: the first rule that holds decides.
//
// The sender chooses what its request to send (RTS) describes, the receiver what is done with it. Any thread; nothing
// is shared. docs/large-messages.md has the rules as a table, which a test compares with these.
//
//   sender                                     receiver
//   choose_for_send ─▶ RTS(key, receive) ────▶ choose_for_receive ─▶ get │ shared_copy │ device_get │ stream │ nothing
//
// A scheme that fails falls back to `stream`, and to no other one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "comm/state/rtr_table.hpp"

namespace canele::comm::rendezvous {

enum class Scheme : std::uint8_t {
  nothing,             ///< no data moves
  receiver_initiated,  ///< the sender has found the receive already: both ends copy
  shared_copy,         ///< both ends copy chunks, once the message has met its receive
  get,                 ///< any thread of the receiver copies from the sender's memory
  async_get,           ///< the driver of the receiver reads the sender's memory
  device_get,          ///< a device of the receiver copies from the memory of the sender's device
  stream               ///< the sender sends the data when the receiver asks for it
};

/// What the sender knows when it writes the RTS. Lengths are in bytes.
struct SendFacts {
  std::uint64_t length = 0;
  bool copied = false;                 ///< the data lies in a segment that the peer reads already
  bool on_device = false;              ///< the data is in memory of a device, which devices of the peer can read
  bool incomplete = false;             ///< a device has not copied all of the data to host memory
  bool read_elsewhere = false;         ///< a multicast: the destination takes the data from another rank
  bool part_of_other = false;          ///< the send belongs to a multicast, or is buffered
  bool remote_rtr = false;             ///< the receive is known: the peer has sent an RTR for it
  bool gets = false;                   ///< the driver can get
  bool any_thread = false;             ///< its copies may be made by any thread
  bool deferred_registration = false;  ///< memory is registered when the driver takes the packet
  bool needs_fin = false;              ///< the sender keeps the memory until a FIN, whatever the scheme
  bool copy_pays = false;              ///< one copy by the kernel is better than a stream, see kernel_copies()
  bool few_pieces = false;             ///< the memory has so few pieces that they can be described
};
/// What the receiver knows when an RTS has met a receive with memory. Lengths are in bytes.
struct ReceiveFacts {
  std::uint64_t length = 0;        ///< that the message and the receive have in common
  bool ended = false;              ///< the peer has failed, or this engine is leaving
  bool stream_is_quicker = false;  ///< the RTS leaves the choice, and the stream is known to be quicker
  bool has_device_key = false;     ///< the RTS describes memory of a device, and the receive is on one that may read it
  bool has_key = false;            ///< the RTS describes memory, by the driver of this rail, and that can get
  bool any_thread = false;         ///< copies may be made by any thread
  bool multicast = false;          ///< the data is forwarded
  bool is_operand = false;         ///< of a blocking reduction, and no worker runs
  bool both_can_copy = false;    ///< CANELE_EXPERT_RECEIVER_INITIATED, one rail, lines, and a driver that gets and puts
  bool alone_is_better = false;  ///< all threads of the program want cores, and the copy is short
  bool has_line = false;         ///< a line is free, or will soon be: transfers that move have at least half of them
};
/// One rule: `when` says in words what `holds` checks.
template <typename Facts>
struct Rule {
  Scheme scheme;
  const char* when;
  bool (*holds)(const Facts&);
};

inline constexpr Rule<SendFacts> send_rules[] = {
    {Scheme::device_get, "the data is in memory of a device that devices of the peer can read",
     [](const SendFacts& f) { return f.on_device; }},
    {Scheme::stream, "the sender's device has not copied all of the data to host memory",
     [](const SendFacts& f) { return f.incomplete; }},
    {Scheme::stream, "the destination of a multicast reads from another rank",
     [](const SendFacts& f) { return f.read_elsewhere && !f.copied; }},
    {Scheme::get, "the data lies in a segment that the peer reads", [](const SendFacts& f) { return f.copied; }},
    {Scheme::receiver_initiated,
     "the peer has sent an RTR for it, more than 128 KiB, and a kernel copy pays; no multicast, not buffered",
     [](const SendFacts& f) {
       return f.remote_rtr && !f.part_of_other && f.length >= RtrTable::shortest && f.copy_pays;
     }},
    {Scheme::get, "the driver gets from any thread, a kernel copy pays, at most 16 pieces",
     [](const SendFacts& f) { return f.gets && f.any_thread && f.copy_pays && f.few_pieces; }},
    {Scheme::async_get, "the driver gets by itself, at most 8 pieces, and the RTS asks for no FIN",
     [](const SendFacts& f) {
       return f.gets && !f.any_thread && f.deferred_registration && f.few_pieces && !f.needs_fin;
     }},
    {Scheme::stream, "else", [](const SendFacts&) { return true; }},
};

inline constexpr Rule<ReceiveFacts> receive_rules[] = {
    {Scheme::nothing, "the peer has failed, or this engine is leaving (with an error)",
     [](const ReceiveFacts& f) { return f.ended; }},
    {Scheme::nothing, "message or receive has no bytes", [](const ReceiveFacts& f) { return f.length == 0; }},
    {Scheme::device_get, "the RTS has a key to memory of a device, and a device of the receive can read it",
     [](const ReceiveFacts& f) { return f.has_device_key; }},
    {Scheme::stream, "the RTS leaves the choice, and a stream is measured to be quicker",
     [](const ReceiveFacts& f) { return f.stream_is_quicker; }},
    {Scheme::shared_copy,
     "the RTS has a key, more than 128 KiB, both ends can copy, a line is free or will be; no multicast, no operand of "
     "a blocking reduction without a worker; one copy alone is not better",
     [](const ReceiveFacts& f) {
       return f.has_key && !f.multicast && !f.is_operand && f.length > RtrTable::longest_for_one && f.both_can_copy &&
              !f.alone_is_better && f.has_line;
     }},
    {Scheme::get, "the RTS has a key, and any thread may copy",
     [](const ReceiveFacts& f) { return f.has_key && f.any_thread; }},
    {Scheme::async_get, "the RTS has a key", [](const ReceiveFacts& f) { return f.has_key; }},
    {Scheme::stream, "else", [](const ReceiveFacts&) { return true; }},
};

/// Tries the rules in their order. Unrolled, so that each `holds` is inlined.
template <const auto& rules, typename Facts>
[[gnu::always_inline]] inline Scheme first_of(const Facts& facts) {
  Scheme scheme = Scheme::stream;
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    static_cast<void>(((rules[i].holds(facts) && (scheme = rules[i].scheme, true)) || ...));
  }
  (std::make_index_sequence<std::size(rules)>{});
  return scheme;
}

/// Returns what the RTS makes possible: receiver_initiated, get, async_get, device_get, or stream.
inline Scheme choose_for_send(const SendFacts& facts) { return first_of<send_rules>(facts); }
/// Returns what the receiver does: nothing, shared_copy, get, async_get, device_get, or stream.
inline Scheme choose_for_receive(const ReceiveFacts& facts) { return first_of<receive_rules>(facts); }

const char* name_of(Scheme scheme);

}  // namespace canele::comm::rendezvous
