// SPDX-License-Identifier: BSD-3-Clause
//
// Request: what the library keeps in a canele_request_t, which is the caller's memory.
//
// Any thread may access `word`. The other fields belong to the thread that posts, and then to the holder of the
// engine's lock, until the request is finalized.
//
// One 64-bit word holds the events that happened, those wanted, those delivered, and the waiter. Completing a request
// is thus one atomic operation, after which the request may be gone. The completing thread therefore takes the waiter
// and the need for a callback from the old value.
//
//   word:  63 …………… 16 │ 11 10  9 │ 8 7 6     │ 5 4 3  │ 2 1 0
//          parker       │ s  c  q  │ delivered │ wanted │ happened      (events: header, received, finalized)
//
//   q: in the task queue, or being delivered (at most one thread delivers)
//   c: a cancel is linked: finalizing waits for it
//   s: its data is staged for a device: see state/staged.hpp
#pragma once

#include <canele/canele.h>

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "comm/matching/node.hpp"
#include "comm/state/queue_node.hpp"
#include "comm/state/request_states.hpp"
#include "comm/wire/handle.hpp"
#include "comm/wire/wire.hpp"
#include "ltask/parker.hpp"
#include "ltask/submit_lock.hpp"
#include "ltask/task.hpp"
#include "strategies/strategy.hpp"

namespace canele::comm {

class Context;
class Session;
struct Request;
struct Peer;
class Sink;
struct Message;
namespace one_sided {
struct RemoteKey;
struct Transfer;
}  // namespace one_sided

/// Kinds of operations in the engine's submission queue.
enum class OpKind : std::uint8_t {
  send,
  receive,
  bind,
  cancel,
  probe,
  reprioritize,
  sent,
  transfer_done,
  access,    ///< a one-sided operation
  complete,  ///< the program ends a begun request
  call
};
struct Op : ltask::SubmitLock::Node {
  OpKind kind;
};

/// A rare operation, on the heap or on the caller's stack. `call` does the rest, and may delete the operation.
struct CallOp : Op {
  void (*call)(Context&, CallOp&) = nullptr;
};

/// An operation whose caller waits for the answer, on the caller's stack. It may be gone once `answered` is set.
struct AnswerOp : Op {
  std::atomic<bool> answered{false};
};

namespace event {
inline constexpr unsigned header = CANELE_EVENT_HEADER, received = CANELE_EVENT_RECEIVED,
                          finalized = CANELE_EVENT_FINALIZED;
inline constexpr unsigned all = header | received | finalized;
}  // namespace event

class RequestWord {
 public:
  static constexpr int wanted_shift = 3, delivered_shift = 6, parker_shift = 16;
  static constexpr std::uint64_t queued_bit = 1u << 9, cancel_bit = 1u << 10, staged_bit = 1u << 11;
  static constexpr std::uint64_t low_bits = 0xffff;

  static unsigned happened(std::uint64_t w) { return w & event::all; }
  static unsigned wanted(std::uint64_t w) { return (w >> wanted_shift) & event::all; }
  static unsigned delivered(std::uint64_t w) { return (w >> delivered_shift) & event::all; }
  static unsigned due(std::uint64_t w) { return happened(w) & wanted(w) & ~delivered(w); }
  static ltask::Parker* parker(std::uint64_t w) { return reinterpret_cast<ltask::Parker*>(w >> parker_shift); }
};

/// A receive with its parameters. The request itself has only its Outcome set so far.
struct Posting {
  Request* request;
  Session* session;
  std::uint64_t tag, mask;  ///< no bit of the tag is outside of the mask
  std::int32_t source;
  canele_data_t data;
};

/// The links of a request are base classes, so that static_cast leads from a link back to its request.
struct PostOp : Op {};                 ///< posting, binding
struct CancelOp : Op {};               ///< cancelling; separate, because the PostOp may still be linked
struct DeliveryTask : ltask::Task {};  ///< delivers events

/// Fields that only a send, or only a receive, needs. A base of the request, so that item and node lead back to it.
struct Direction {
  struct Receive {
    PostedNode node;
    Message* message;  ///< matched by an unbound receive
    Peer* peer;        ///< rendezvous or RTR: the sender
    Sink* sink;        ///< the multicast that it has matched
  };
  union {
    strategies::Item item;  ///< send
    Receive receive;
  };
  Direction() {}
  ~Direction() {}
};

/// What an arrival reads, contiguous with the node behind it: one receive among many is not in the cache.
struct Outcome {
  enum class Kind : std::uint8_t { null, send, receive };
  using Stage = RequestStage;
  /// The role of an internal request, if any; see comm/multicast/state.hpp.
  enum class InternalRole : std::uint8_t {
    none,
    destination_send,  ///< a send with a route: a DestinationSend.
    in_segment,        ///< a DestinationSend whose data is in a broadcast segment.
    child_send,        ///< a send of another rank's data: a ChildSend.
    relay_buffer,      ///< a receive into memory of the engine.
    buffered,          ///< not a multicast: a buffered::BufferedSend.
    one_sided,         ///< an operation of the program on the memory of a peer; see state/one_sided.hpp.
    one_sided_reply,   ///< a PooledRequest: the answer to a get.
    taker              ///< a receive without a buffer; its argument is a MessageTaker. See state/message_taker.hpp.
  };

  std::atomic<std::uint64_t> word;
  Context* context;
  Session* session;
  std::uint64_t status_tag;
  std::uint64_t status_length;
  std::int16_t status_error;  ///< this and `told` in this order: a post writes both with one store.
  std::uint16_t told;         ///< 1: finalized, and a call has told the program so. See tell() and told_of_end().
  std::int32_t rank;          ///< destination, or source once known.
  Kind kind;
  Stage stage;  ///< changed by transition(); a post writes it with its neighbours.
  // These are flags, because each of them holds in several states.
  bool synchronous;  ///< send: finalized only after the match. Fixed at post.
  bool unbound;      ///< receive without a buffer. Until one is bound.
  bool rendezvous;   ///< send: goes by RTS. Fixed once the send has joined a backlog.
  bool cancelled;    ///< how it ended.
  bool copying;      ///< a local task copies chunks of it, even if it streams; see rendezvous/shared_copy.hpp.
  bool needs_fin;    ///< rendezvous: the sender keeps the data until FIN. Fixed by the RTS.
  Handle handle;     ///< the peer's name for this request; none: it has no name. In a posted receive: it has an RTR
  canele_data_t data;
  InternalRole role;
  std::uint32_t tick;  ///< when it was posted; see observe/hang_watch.hpp
};

/// Request of either direction. Zero bytes are a null request; no constructor ever runs on the caller's memory. A small
/// receive touches only the first 192 bytes, unless it is linked or a thread sleeps for it. A small receive whose
/// message has arrived touches only the first 64 bytes.
struct Request : Outcome, Direction, PostOp, CancelOp, DeliveryTask, QueueNode {
  using Outcome::kind;  // not that of the links
  canele_callback_fn callback;
  void* argument;
  std::uint16_t header;    ///< send: bytes that travel ahead
  bool is_operand;         ///< large: an operand of a blocking reduction, see rendezvous.cpp. Set by the poster
  std::uint8_t operation;  ///< one-sided: a one_sided::AccessKind
  std::uint32_t slot;      ///< one-sided: of the notification, or what the target does, see one_sided::pack_code()
  union {
    one_sided::RemoteKey* key;  ///< one-sided: nullptr: the operation needs none
    Handle transfer_id;         ///< send: the receiver's name for the transfer; receive: the sender's name for the send
    Request* flow_next;         ///< these four while the send is credit-blocked: see state/blocked_sends.hpp
  };
  union {
    std::uint64_t moved;  ///< bulk bytes sent or received; receive: undefined before its RTR or rendezvous. One-sided:
                          ///< of a get: bytes received; of an accumulate: where its data begins in `data`
    Request* flow_prev;
  };
  union {
    std::uint64_t number;    ///< one-sided: in its stream; 0: not begun
    std::uint64_t expected;  ///< bulk bytes granted; undefined likewise
    Request* bucket_next;
  };
  union {
    std::uint64_t bulk_rails;  ///< send: a bit for each rail that its bulk data has used; see bulk_bit()
    std::uint64_t blocked_number;
    std::uint64_t immediate;  ///< one-sided: of the notification; the operand; of an accumulate: bytes received
  };
  union {
    std::uint64_t registration;     ///< send: the driver's name for its registered memory; 0: none
    std::uint64_t compare;          ///< one-sided: of an atomic operation
    std::byte* before;              ///< one-sided: memory for former elements. Of an accumulate: nullptr: none is
                                    ///< wanted; of an answer: the engine's, on the heap, or nullptr
    one_sided::Transfer* transfer;  ///< of a put or get: nullptr: its data goes, or went, by access chunks
  };
  Request* blocked_next;  ///< see state/blocked_sends.hpp
  Request* blocked_prev;
  wire::Strides strides;  ///< of a put or get: the memory of the target

  /// Initializes the fields of a new request that are outside of its first cache line.
  void begin(const Context& of);

  /// Records that a call has told the program of the end of the request. What the program asks next concerns the next
  /// use. Several threads may call this at once.
  void tell() { std::atomic_ref(told).store(1, std::memory_order_relaxed); }
  /// Returns whether the program knows of the end of a finalized request, from a call or from an event.
  bool told_of_end(std::uint64_t seen) {
    return std::atomic_ref(told).load(std::memory_order_relaxed) != 0 ||
           (RequestWord::delivered(seen) & event::finalized) != 0;
  }

  /// Returns whether the envelope of a send has left. Only then may the peer refer to the send: peers can guess names.
  bool announced() const { return is_moving() || stage == Stage::blocked || stage == Stage::advertised; }
  /// Returns whether data moves, or an acknowledgement is due.
  bool is_moving() const { return stage == Stage::moving || stage == Stage::draining; }
  /// Returns whether a send is in its peer's list of sends without credit.
  bool is_blocked() const {
    return stage == Stage::blocked || stage == Stage::advertising || stage == Stage::advertised;
  }
  bool finalized() const { return (word.load(std::memory_order_acquire) & event::finalized) != 0; }
};

inline void transition(Request& request, Request::Stage to) {
  [[maybe_unused]] const std::uint32_t from =
      request.kind == Request::Kind::receive ? receive_transitions.into(to) : send_transitions.into(to);
  assert(send_transitions.contains(from, request.stage) && "no such transition of a request");
  request.stage = to;
}

static_assert(sizeof(Request) <= CANELE_REQUEST_SIZE, "canele_request_t is too small");
static_assert(sizeof(Outcome) + sizeof(Direction::Receive) == 192, "a plain receive is in the first half");
static_assert(offsetof(Outcome, data) == 64, "what tells how it ended is a line");
static_assert(alignof(Request) <= 16, "calloc gives 16");

struct ProbeOp : AnswerOp {
  Session* session = nullptr;
  std::int32_t source = 0;
  std::uint64_t tag = 0, mask = 0;
  Request* into = nullptr;  ///< takes the message, if not nullptr
  bool found = false;
  canele_status_t status{};  ///< its error is CANELE_OK, or why the probe was not made
};

struct ReprioritizeOp : AnswerOp {
  Request* request = nullptr;
  std::int32_t priority = 0;
  int result = CANELE_OK;
};

inline Request& request_of(canele_request_t* r) { return *reinterpret_cast<Request*>(r); }
inline const Request& request_of(const canele_request_t* r) { return *reinterpret_cast<const Request*>(r); }
inline canele_request_t* public_of(Request& r) { return reinterpret_cast<canele_request_t*>(&r); }
inline Request& request_of(strategies::Item& item) {
  return static_cast<Request&>(*reinterpret_cast<Direction*>(&item));
}
inline const Request& request_of(const PostedNode& node) {
  return static_cast<const Request&>(*reinterpret_cast<const Direction*>(&node));
}
inline Request& request_of(PostedNode& node) { return static_cast<Request&>(*reinterpret_cast<Direction*>(&node)); }

}  // namespace canele::comm
