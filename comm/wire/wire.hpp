// SPDX-License-Identifier: BSD-3-Clause
//
// The wire format: what a packet between two engines holds. docs/wire-format.md describes the same, to the byte.
//
// A packet is one or more chunks, back to back, without padding. All integers are little-endian. A chunk head has 16
// bytes. So a message of up to 40 bytes shares one cache line with its head and the driver's word.
//
// Any thread may call these functions; they have no state. protocol/ writes and reads packets by them.
//
//    chunk:   tag u64 | seq u32 | session u16 | type u8 | size u8 | [size u32, if the u8 is 255] | size bytes: payload
//
//    type                tag              seq        payload
//    eager               the user's tag   envelope   the message
//    eager_sync          the user's tag   envelope   u64 handle of the send, then the message
//    rts                 the user's tag   envelope   Rts, header bytes, rkey bytes
//    cts                 handle of send   0          Cts
//    fin                 handle of send   0          u32 outcome: 0 delivered, 4 the receiver has let go of the
//                                                    message, 7 no memory there, else the message could not be read
//    ack                 handle of send   outcome    (none): 0: a synchronous eager message was matched; else as of fin
//    session             0                epoch      the label; announces `session` before its first use, and takes the
//                                                    place of what it meant before
//    bye                 0                0          (none): the peer leaves in good order
//    sequenced           packet number    upto       (none): first in its packet, see docs; `upto` acknowledges, low 32
//                                                    bits
//    cumulative_ack      upto             0          (none): acknowledges sequenced packets up to that number
//    rtr                 tag of receive   0          Rtr, rkey bytes: an exact receive in `session`, for the peer
//                                                    to fill
//    shared_copy         handle of send   0          Rtr, rkey bytes: it has met a receive, and both ends may copy
//                                                    it
//    copy_done           key of receive   0          (none): the sender has ended the last chunk of it
//    regrant             key of transfer  0          (none): the sender lost the rail of these bulk bytes, and asks for
//                                                    a cts
//    credit              total            0          (none): what the receiver has granted so far, see state/credit.hpp
//    blocked             1 or 0           episode    (none): the sender has credit-blocked messages; none any more
//    solicit             solicit id       episode    Solicit: advertise the blocked messages that fit; or (none): all,
//                                                    from the oldest
//    blocked_envelope    the user's tag   batch      BlockedEnvelope, Rts, header bytes, rkey bytes: no envelope;
//                                                    forgotten, unless a receive that was posted before the solicit id
//                                                    takes it, or a probe wants it
//    blocked_reply       mask             batch      (none): which envelopes of the batch were taken, a bit each
//    multicast_rts       the user's tag   envelope   Route, ranks of the children (u32 each), then as rts
//    multicast_cts       multicast        0          MulticastCts: the sender of this asks its parent for data of a
//                                                    multicast
//    multicast_done      multicast        0          i32 root: the sender of this has all of it, or asks another rank
//    multicast_redirect  multicast        0          i32 root: it is to be asked, not the parent
//    rail_close          0                0          (none): its sender leaves; this rail of several ends here, and is
//                                                    not lost
//    rail_probe          time, not 0      rail       (none): one of several rails, by DriverInstance::driver_tag(), is
//                                                    asked for an echo
//    rail_echo           that of probe    rail       (none): the answer, by the same rail
//    rail_report         total            rail       (none): bulk bytes that have arrived by this rail
//    transfer_failed     key of transfer  0          (none): its sender cannot read the data: a device has failed
//    solicit_done        count            episode    (none): how many solicits have had all that fits
//
//    One-sided operations; `session` is the number of their lane, see state/one_sided.hpp.
//    attach              handle of region index      u64 nonce: the sender names the region by `index` from now on
//    detach              0                index      (none): `index` is free again
//    put                 offset           index      u32 access flags, [Notification], bytes
//    get                 offset           index      u32 access flags, GetRange, Strides if there are any
//    got                 handle           0          the next bytes of the answer to a get or an accumulate
//    atomic              offset           index      u32 access flags, AtomicWord
//    accumulate          offset           index      u32 access flags, Accumulate, the elements
//    result              handle of atomic 0          u64 value that the word had
//    notify              0                0          u32 access flags, Notification
//    flush               0                0          u32 access flags: an operation that does nothing
//    executed            total            0          (none): operations of the lane that the sender has executed
//    access_failed       number           0          i32 error: that operation of the lane was not allowed
//    notified            total            0          (none): notifications that the program of the sender has taken
//    attached            number           index      Attached, rkey bytes: the peer may access the region of that
//    attach
//                                                    by itself
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "comm/wire/handle.hpp"
#include "comm/wire/verdict.hpp"

namespace canele::comm::wire {

static_assert(std::endian::native == std::endian::little,
              "the wire format is little-endian, and so is every machine it runs on yet");

inline constexpr std::uint32_t version = 18;

enum class Type : std::uint8_t {
  eager = 1,
  eager_sync,
  rts,
  cts,
  fin,
  ack,
  session,
  bye,
  sequenced,
  cumulative_ack,
  regrant,
  rtr,
  copy_done,
  credit,
  blocked,
  solicit,
  blocked_envelope,
  blocked_reply,
  multicast_rts,
  multicast_cts,
  multicast_done,
  multicast_redirect,
  rail_close,
  shared_copy,
  solicit_done,
  attach,
  detach,
  put,
  get,
  got,
  atomic,
  result,
  notify,
  flush,
  executed,
  access_failed,
  notified,
  attached,
  accumulate,
  rail_probe,
  rail_echo,
  rail_report,
  transfer_failed
};

struct Head {
  std::uint64_t tag;
  std::uint32_t seq;
  std::uint16_t session;
  Type type;
  std::uint8_t size;
};
static_assert(sizeof(Head) == 16 && offsetof(Head, seq) == 8 && offsetof(Head, session) == 12 &&
              offsetof(Head, type) == 14 && offsetof(Head, size) == 15);
inline constexpr std::uint8_t long_size = 255;  ///< a u32 size follows the head

/// Returns the head as two words, made in registers. If it were stored field by field, it would not be there yet for
/// the copy that follows.
inline std::array<std::uint64_t, 2> words_of(const Head& head) {
  return {head.tag, head.seq | std::uint64_t{head.session} << 32 | static_cast<std::uint64_t>(head.type) << 48 |
                        std::uint64_t{head.size} << 56};
}

struct Rts {
  Handle handle;         ///< of the send
  std::uint64_t length;  ///< of the message
  std::uint16_t header;  ///< bytes of the message that follow
  std::uint16_t rkey;    ///< bytes of the rkey, which follows the header
  std::uint8_t synchronous;
  std::uint8_t needs_fin;    ///< the sender keeps the data until fin, also if it streams the message.
  std::uint8_t rkey_driver;  ///< tag of the driver by which the receiver may read the memory; 0: none
  std::uint8_t may_stream;   ///< the receiver may ask for a stream although it may read the memory
  Handle receive;            ///< key of the RTR's receive for it, see Rtr: both ends copy; none: it is to be matched
};
static_assert(sizeof(Rts) == 32);
/// Rts::rkey_driver of a key to the memory of a device: see device/exported_data.hpp. No driver has this tag.
inline constexpr std::uint8_t device_memory = 255;

/// Ready to receive: a posted receive, or one that has met its message, shown to its sender. Chunks of 128 KiB or more
/// are claimed in a shared line; see state/rtr_table.hpp.
struct Rtr {
  Handle key;            ///< of the receive
  std::uint64_t length;  ///< bytes that it has room for
  std::uint32_t seen;    ///< envelopes below this number had come from the peer when it was posted; share: 0
  std::uint32_t generation;
  std::uint16_t line;  ///< of the receiver's shared lines
  std::uint16_t rkey;  ///< bytes of the rkey, which follows
  std::uint32_t reserved;
};
static_assert(sizeof(Rtr) == 32);

struct Cts {
  Handle key;            ///< of the receive; goes with every bulk packet
  std::uint64_t offset;  ///< of the message
  std::uint64_t length;  ///< bytes wanted from there; 0 is an error
};
static_assert(sizeof(Cts) == 24);

/// What a receive, or a probe, wants of the blocked messages.
struct Solicit {
  std::uint64_t tag, mask;  ///< no bit of the tag is outside of the mask
  std::uint32_t probe;      ///< 1: one message is enough, and is kept
  std::uint32_t reserved;
};
static_assert(sizeof(Solicit) == 24);

struct BlockedEnvelope {
  std::uint64_t solicit_id;  ///< of a solicit: only receives that are older may take it
  std::uint8_t index;        ///< in its batch
  std::uint8_t count;        ///< envelopes in the batch
  std::uint8_t probe;        ///< a probe has asked for it
  std::uint8_t reserved[5];
};
static_assert(sizeof(BlockedEnvelope) == 16);

/// Stands ahead of the Rts of a multicast; see comm/multicast/state.hpp.
struct Route {
  std::uint32_t id;        ///< the root's number for the multicast
  std::uint32_t lowest;    ///< all multicasts of the root with lower numbers have ended everywhere.
  std::int32_t parent;     ///< the rank to ask for the data; -1: the root
  std::uint32_t children;  ///< how many ranks follow, the children of the receiver
};
static_assert(sizeof(Route) == 16);

struct MulticastCts {
  Handle key;            ///< goes with every bulk packet
  std::uint64_t offset;  ///< of the message
  std::uint64_t length;  ///< bytes wanted from there
  std::int32_t root;
  std::uint32_t reserved;
};
static_assert(sizeof(MulticastCts) == 32);

/// Flags of a one-sided operation.
inline constexpr std::uint32_t access_wants_ack = 1;   ///< `executed` is to be sent
inline constexpr std::uint32_t access_notifies = 2;    ///< a Notification follows the flags
inline constexpr std::uint32_t access_by_message = 4;  ///< the data goes as a message
inline constexpr std::uint32_t access_strided = 8;     ///< Strides follow the other fields of a put or get

struct Notification {
  std::uint64_t immediate;
  std::uint64_t length;  ///< of the put
  std::uint64_t offset;  ///< of the put
  std::uint32_t slot;
  std::uint32_t reserved;
};
static_assert(sizeof(Notification) == 32);

struct GetRange {
  Handle get;            ///< goes with the answer
  std::uint64_t length;  ///< in bytes
};
static_assert(sizeof(GetRange) == 16);

/// Equal blocks of memory, one behind the other or with gaps. Zero: one block.
struct Strides {
  std::uint32_t block;   ///< bytes of a block
  std::uint32_t stride;  ///< bytes from the beginning of a block to that of the next
};
static_assert(sizeof(Strides) == 8);

/// A permission to access memory without the target. Both memory keys are the driver's.
struct Attached {
  std::uint32_t word;        ///< of the target's shared lines: see state/access_permit.hpp
  std::uint32_t generation;  ///< of the permit
  std::uint16_t get, put;    ///< bytes of the rkeys that follow; 0: not this kind of access
  std::uint32_t reserved;
};
static_assert(sizeof(Attached) == 16);

struct AtomicWord {
  std::uint64_t operand, compare;
  Handle result;           ///< goes with the answer; none: no answer is wanted
  std::uint8_t operation;  ///< enum canele_atomic_operation
  std::uint8_t size;       ///< 4 or 8 bytes
  std::uint8_t reserved[6];
};
static_assert(sizeof(AtomicWord) == 32);

struct Accumulate {
  Handle result;           ///< goes with the answer, the former elements; none: no answer is wanted
  std::uint32_t length;    ///< of the elements, in bytes. They follow, unless the operation only reads
  std::uint8_t operation;  ///< enum canele_operation or canele_accumulate_operation
  std::uint8_t element;    ///< enum canele_element
  std::uint8_t reserved[2];
};
static_assert(sizeof(Accumulate) == 16);

// Flow control. Both ends count by these costs. envelope_cost: what a message that is kept costs besides its bytes.
// first_credit: what each peer may send before it hears anything.
inline constexpr std::uint64_t envelope_cost = 256, first_credit = 16384;
inline constexpr std::uint64_t longest_rkey = 256;  ///< drivers::MemoryKey::max_size
inline constexpr std::uint64_t credit_cost_of_eager(std::uint64_t length) { return envelope_cost + length; }
inline constexpr std::uint64_t credit_cost_of_rts(std::uint64_t header) {
  return envelope_cost + longest_rkey + header;
}

inline constexpr std::size_t max_label =
    63 + sizeof "barrier:" - 1;  ///< labels of users have up to 63 bytes; the engine puts a word in front

/// Returns the bytes that a chunk with `payload` bytes takes.
inline constexpr std::size_t chunk_size(std::size_t payload) {
  return sizeof(Head) + (payload >= long_size ? 4 : 0) + payload;
}

/// Writes the head of a chunk. Returns where its payload goes.
inline std::byte* put_head(std::byte* out, Head head, std::size_t payload) {
  head.size = payload >= long_size ? long_size : static_cast<std::uint8_t>(payload);
  const auto words = words_of(head);
  std::memcpy(out, words.data(), sizeof words);
  out += sizeof words;
  if (payload >= long_size) {
    const auto size = static_cast<std::uint32_t>(payload);
    std::memcpy(out, &size, sizeof size);
    out += sizeof size;
  }
  return out;
}

/// One chunk taken from the front of a packet.
struct Chunk {
  Head head;
  std::span<const std::byte> payload;
};

/// Takes the next chunk off `packet`. Returns the verdict on that chunk.
inline Verdict take_chunk(std::span<const std::byte>& packet, Chunk& chunk) {
  if (packet.size() < sizeof(Head)) return Verdict::violation("a chunk is cut inside its head");
  std::memcpy(&chunk.head, packet.data(), sizeof(Head));  // one read: the packet may be shared memory
  packet = packet.subspan(sizeof(Head));
  std::size_t size = chunk.head.size;
  if (size == long_size) {
    std::uint32_t s;
    if (packet.size() < sizeof s) return Verdict::violation("a chunk is cut inside its size");
    std::memcpy(&s, packet.data(), sizeof s);
    packet = packet.subspan(sizeof s);
    size = s;
  }
  if (size > packet.size()) return Verdict::violation("a chunk is longer than its packet");
  chunk.payload = packet.first(size);
  packet = packet.subspan(size);
  return Verdict::ok();
}

/// Reads the head of the first chunk. Returns false if there is none.
inline bool peek(std::span<const std::byte> packet, Head& head) {
  if (packet.size() < sizeof(Head)) return false;
  std::memcpy(&head, packet.data(), sizeof(Head));  // one read: the packet may be shared memory
  return true;
}

/// Returns whether a packet of `size` bytes that begins with `head` is a single short eager message, as most are.
inline bool is_one_eager(const Head& head, std::size_t size) {
  const std::size_t payload = size - sizeof(Head);
  const auto type_and_size = std::bit_cast<std::array<std::uint64_t, 2>>(head)[1] >> 48;  // in one comparison
  return payload < long_size && type_and_size == (static_cast<std::uint64_t>(Type::eager) | payload << 8);
}

/// Returns the payload of a packet that begins with `head` if it is a single eager message that is not short, else an
/// empty span.
inline std::span<const std::byte> one_long_eager(const Head& head, std::span<const std::byte> packet) {
  std::uint32_t size = 0;
  constexpr std::size_t start = sizeof head + sizeof size;
  if (head.type != Type::eager || head.size != long_size || packet.size() < start) return {};
  std::memcpy(&size, packet.data() + sizeof head, sizeof size);
  return size == packet.size() - start ? packet.subspan(start) : std::span<const std::byte>{};
}

/// Reads a structure from the front of a payload. Returns false if the payload is too short.
template <typename T>
bool take(std::span<const std::byte>& payload, T& value) {
  if (payload.size() < sizeof(T)) return false;
  std::memcpy(&value, payload.data(), sizeof(T));
  payload = payload.subspan(sizeof(T));
  return true;
}

}  // namespace canele::comm::wire
