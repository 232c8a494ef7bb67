// SPDX-License-Identifier: BSD-3-Clause
//
// Request: what the library keeps in a canele_request_t, the caller's memory.
//
// Who: the engine.
// Threads: `word` by any; the rest by the thread that posts, then under the engine's lock, until it is finalized.
// Surprise: one 64-bit word holds the events that happened, those wanted, those delivered, and who waits, so that
//     completing is one atomic operation after which the request may be gone: whoever completes reads the waiter and
//     the need for a callback out of the old value.
//
//   word:  63 …………… 16 │ 10  9 │ 8 7 6     │ 5 4 3  │ 2 1 0
//          parker       │ c  q  │ delivered │ wanted │ happened      (events: header, received, finalized)
//
//   q: in the task queue, or being delivered (at most one thread delivers)
//   c: a cancel is linked: finalizing waits for it
#pragma once

#include <canele/canele.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "comm/matching/node.hpp"
#include "ltask/parker.hpp"
#include "ltask/submit_lock.hpp"
#include "ltask/task.hpp"
#include "strategies/strategy.hpp"

namespace canele::comm {

class Engine;
class Session;
struct Request;
struct Peer;
struct Cast;
struct Message;
struct Rail;

/// What is linked into the engine's submission queue.
enum class OpKind : std::uint8_t { send, receive, bind, cancel, probe, reprioritize, sent, pulled, call };
struct Op : ltask::SubmitLock::Node {
  OpKind kind;
};

/// A rare operation, made on the heap or the caller's stack: the function does the rest, and may delete it.
struct CallOp : Op {
  void (*call)(Engine&, CallOp&) = nullptr;
};

/// An operation whose caller waits for the answer, on the caller's stack. After `answered` is set it may be gone.
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
  static constexpr std::uint64_t queued_bit = 1u << 9, cancel_bit = 1u << 10;
  static constexpr std::uint64_t low_bits = 0xffff;

  static unsigned happened(std::uint64_t w) { return w & event::all; }
  static unsigned wanted(std::uint64_t w) { return (w >> wanted_shift) & event::all; }
  static unsigned delivered(std::uint64_t w) { return (w >> delivered_shift) & event::all; }
  static unsigned due(std::uint64_t w) { return happened(w) & wanted(w) & ~delivered(w); }
  static ltask::Parker* parker(std::uint64_t w) { return reinterpret_cast<ltask::Parker*>(w >> parker_shift); }
};

/// A receive as it was asked for; its request has only its outcome yet.
struct Posting {
  Request* request;
  Session* session;
  std::uint64_t tag, mask;  ///< no bit of the tag is outside of the mask
  std::int32_t source;
  canele_data_t data;
};

/// The three links of a request are bases, so that the engine gets from a link back to its request by static_cast.
struct PostOp : Op {};                 ///< posting, binding
struct CancelOp : Op {};               ///< cancelling; apart, because the request may still be linked by its PostOp
struct DeliveryTask : ltask::Task {};  ///< delivers events

/// What only a send, or only a receive, needs. A base of the request, so that item and node lead back to it.
struct Direction {
  struct Receive {
    PostedNode node;
    Message* message;  ///< what a late receive holds
    Peer* peer;        ///< rendezvous, or offered: who sends
    Cast* cast;        ///< the multicast that it has met
  };
  union {
    strategies::Item item;  ///< send
    Receive receive;
  };
  Direction() {}
  ~Direction() {}
};

/// What an arrival looks at, in one piece with the node behind it: a receive among many is not in the cache.
struct Outcome {
  enum class Kind : std::uint8_t { null, send, receive };
  enum class Stage : std::uint8_t {
    idle,    ///< finalized, or never posted
    posted,  ///< submitted; a send: in the backlog
    held,    ///< a late receive that holds its message and has no buffer
    moving,  ///< data moves (rendezvous), or a synchronous send waits for its acknowledgement
    listed,  ///< finalized, and in a completion queue until the program takes it out
  };
  /// What it is in a multicast, if anything; see comm/multicast/casts.hpp.
  enum class Part : std::uint8_t {
    none,
    leg,       ///< a send with a route: a Leg
    shelved,   ///< a Leg whose data lies on a shelf
    forward,   ///< a send of what is somebody else's: a Forward
    stock,     ///< a receive into memory of the engine
    deposited  ///< none of a multicast: a deposit::Deposit
  };

  std::atomic<std::uint64_t> word;
  Engine* engine;
  Session* session;
  std::uint64_t status_tag;
  std::uint64_t status_length;
  std::int16_t status_error;  ///< these two in their order: a post writes both by one store
  std::uint16_t told;  ///< 1: finalized, and the program has been told so by a call. See tell() and told_of_end()
  std::int32_t rank;   ///< destination, or source once known
  Kind kind;
  Stage stage;
  bool synchronous;  ///< send: finalized after the match
  bool late;         ///< receive without a buffer
  bool rendezvous;   ///< send: goes by RTS
  bool cancelled;
  bool confirmed;        ///< send: the receiver has all of it, but a rail may still have the memory
  bool confirm;          ///< rendezvous: the sender keeps the data until it is told that it has arrived
  std::uint64_t handle;  ///< by which the peer names this request; 0 none. Not 0 in a posted receive: it is offered
  canele_data_t data;
  bool withheld;  ///< send: waits for credit
  bool offering;  ///< send: withheld, and an offer of it is in the backlog or in a packet
  bool copying;   ///< a task of this end copies chunks of it; see protocol/shared_copy.hpp
  Part part;
  std::uint32_t tick;  ///< when it was posted; see observe/hang_watch.hpp
};

/// Request of either direction. Zero bytes are a null request; no constructor ever runs on the caller's memory.
/// A small receive that is neither linked nor waited for asleep touches its first 192 bytes only; one whose message is
/// there, the first 64.
struct Request : Outcome, Direction, PostOp, CancelOp, DeliveryTask {
  using Outcome::kind;  // not that of the links
  canele_callback_fn callback;
  void* argument;  ///< with a completion queue: the queue
  void* queue_argument;
  Request* queue_next;
  std::uint16_t header;  ///< send: bytes that travel ahead
  bool streams;          ///< large: through the driver's buffers, for both ends wait. Its owner's, set once
  union {
    std::uint64_t bulk_key;  ///< send: the receiver's name for the transfer; receive: the sender's name for the send
    Request* flow_next;      ///< these four, while it is withheld: see core/withheld.hpp
  };
  union {
    std::uint64_t moved;  ///< bulk bytes sent, or landed; receive: undefined until it is offered, or a rendezvous
    Request* flow_prev;
  };
  union {
    std::uint64_t expected;  ///< bulk bytes granted; the same
    Request* bucket_next;
  };
  union {
    Rail* bulk_rail;  ///< send: the rail that its bulk bytes take
    std::uint64_t withheld_number;
  };
  std::uint64_t exposure;  ///< send: the driver's name for its exposed memory; 0 none
  Request* withheld_next;  ///< see core/withheld.hpp
  Request* withheld_prev;

  /// What of a new request is not in its first line: nothing has happened to it.
  void begin(const Engine& of);

  /// The program learns from a call that the request is finalized: what it asks for next is of the next use. Calls of
  /// several threads may tell at a time.
  void tell() { std::atomic_ref(told).store(1, std::memory_order_relaxed); }
  /// Of a finalized request: has the program been told of its end, by a call or by its event?
  bool told_of_end(std::uint64_t seen) {
    return std::atomic_ref(told).load(std::memory_order_relaxed) != 0 ||
           (RequestWord::delivered(seen) & event::finalized) != 0;
  }

  /// send: its envelope has left, so the peer may speak of it. Names can be guessed.
  bool announced() const { return stage == Stage::moving || (withheld && !offering); }
  bool finalized() const { return (word.load(std::memory_order_acquire) & event::finalized) != 0; }
};

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
  canele_status_t status{};  ///< its error: CANELE_OK, or why there was no look
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
