// SPDX-License-Identifier: BSD-3-Clause
//
// One-sided operations: what the target of accesses and its peers know of each other.
//
// Used by protocol/one_sided_origin and protocol/one_sided_target. Called by the thread that holds the engine's lock.
//
//   origin                                          target
//   RemoteKey ── index ──────────────── attach ───▶ PeerAccess::attached[index] ─▶ Region ─▶ memory
//   Stream: operations of a lane ────── put … ────▶ PeerAccess::executed[lane]
//           ▲ unacknowledged, replies ◀─ executed, got, result, access_failed
//
// The operations of a stream are numbered in the order in which they are written, which is the order in which the
// target executes them. So one total acknowledges all of them. An answer to a get is read while it is sent, so a get
// holds back what writes.
//
// An origin of the same host may access registered memory by itself, if a driver can: the answer to `attach` then gives
// it the driver's keys and an AccessPermit. protocol/one_sided_permission has both ends, post/direct_access the access.
//
// Data that does not fit a packet goes as a message between the two ranks, by all means that large messages have. Both
// ends know its tag, so no round trip is needed. A large put holds back what is behind it.
//
// An operation that the target cannot execute counts as executed, and `access_failed` tells the reason.
//
// Limits at the origin, which the target checks: answers under way (most_replies, most_reply_bytes), and notifications
// that the target's program has not taken (most_notifications).
//
// Rejected: a region's address and nonce in each operation. An index costs four bytes, and a round trip at no time.
// Rejected: acknowledgements by operation. Thousands may be under way.
// Rejected: large data in pieces, one for each packet. Each byte is then copied twice.
#pragma once

#include <canele/one_sided.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>
#include <vector>

#include "comm/state/access_permit.hpp"
#include "comm/state/handle_table.hpp"
#include "comm/state/queue_node.hpp"
#include "comm/state/request.hpp"
#include "comm/state/strided.hpp"
#include "comm/wire/handle.hpp"
#include "comm/wire/wire.hpp"
#include "drivers/driver.hpp"
#include "ltask/shared_memory.hpp"
#include "ltask/task.hpp"

namespace canele::comm {

class Context;
class Session;
struct Peer;
struct Request;

namespace one_sided {

inline constexpr std::uint32_t most_replies = 64;                      ///< answers under way from one target
inline constexpr std::uint32_t most_served = 4 * most_replies;         ///< the same as the target counts them
inline constexpr std::uint64_t most_reply_bytes = 1 << 20;             ///< their bytes, unless there is only one
inline constexpr std::uint64_t longest_accumulate = most_reply_bytes;  ///< of one operation
inline constexpr std::uint64_t most_notifications = 1024;  ///< from one origin, not taken by the target's program
inline constexpr std::uint32_t most_attached = 65'536;     ///< regions that one origin may name at once
inline constexpr std::uint16_t default_lane = 0;
inline constexpr std::string_view session_label = "canele.one-sided";  ///< of the messages of large puts and gets

/// What a one-sided request does.
enum class AccessKind : std::uint8_t { put, get, atomic, accumulate, notify, flush };

/// What an atomic operation or an accumulate does, in one word. Both values are below 256. `detail`: the bytes of the
/// word, or the type of the elements.
inline constexpr std::uint32_t pack_code(unsigned code, unsigned detail) { return code << 8 | detail; }

/// At the beginning of memory that the library has allocated. The program's bytes begin behind `bytes`.
struct SharedHeader {
  static constexpr std::size_t bytes = 4096;  ///< a page

  // As in the key. A process that maps the memory compares them: it may have found other memory, or have a wrong key.
  std::uint64_t region = 0, nonce = 0;
  std::uint32_t access = 0;
  std::atomic<std::uint32_t> revoked{0};  ///< 1: accesses are errors
};

/// What lets one origin access a region by itself.
struct Permission {
  int rank = 0;
  std::uint32_t index = 0;  ///< the origin's name for the region
  AccessPermit permit;
  std::uint32_t generation = 0;
  drivers::Driver* driver = nullptr;
  std::uint64_t registrations[2] = {0, 0};  ///< of the driver, for get and put; 0: none
};

/// Memory of this rank.
struct Region {
  Context* context = nullptr;
  std::byte* base = nullptr;
  std::uint64_t length = 0;
  std::uint64_t nonce = 0;  ///< an origin that does not know it is not the holder of a key
  std::uint32_t access = 0;
  Handle handle = Handle::none;
  std::uint64_t uses = 0;                ///< answers to gets that still read it, large puts that write it
  std::unique_ptr<SharedMemory> shared;  ///< of memory that the library has allocated
  std::vector<Permission> permissions;
};

/// How an origin accesses memory of the target by itself. Constant.
struct DirectAccess {
  drivers::Driver* driver = nullptr;
  AccessPermit permit;
  std::uint32_t generation = 0;
  drivers::MemoryKey get, put;  ///< size 0: not this kind of access
};

/// A key of a peer's memory, at an origin.
struct RemoteKey {
  Context* context = nullptr;
  int rank = 0;
  Handle region = Handle::none;
  std::uint64_t nonce = 0, length = 0;
  std::uint32_t access = 0;
  std::uint32_t index = 0;          ///< the name that the target knows; 0: it was not told yet
  std::uint64_t attach_number = 0;  ///< number of the attach that has told the target, from 1
  std::uint64_t operations = 0;     ///< posted and not over
  std::unique_ptr<SharedMemory> shared;
  std::atomic<std::byte*> mapped{nullptr};  ///< the target's memory in this process; nullptr: it is not there
  std::unique_ptr<DirectAccess> direct_access;
  std::atomic<const DirectAccess*> direct{nullptr};  ///< nullptr: there is no such access, or none any more
};

/// A lane counts the operations that go by packets, so that a thread without the lock knows when it may access mapped
/// memory.
struct Lane {
  Context* context = nullptr;  ///< nullptr: the lane is not open
  std::uint16_t number = default_lane;
  std::uint64_t operations = 0;           ///< posted and not over
  std::atomic<std::uint64_t> effects{0};  ///< accesses to memory that are posted and not known to be executed
  std::atomic<std::uint64_t> all{0};  ///< the same, with notifications and flushes, and errors that no flush has told
  std::atomic<bool> just_flushed{true};  ///< no operation was posted since the last flush; a hint
};

/// A list of requests, linked by blocked_next and blocked_prev.
class RequestList {
 public:
  Request* front() const { return first_; }
  Request* back() const { return last_; }
  void push_back(Request& request);
  void remove(Request& request);

 private:
  Request *first_ = nullptr, *last_ = nullptr;
};

/// Operations that were begun and are not known to be executed.
struct Unconfirmed {
  std::uint64_t count = 0, last = 0;  ///< how many; number of the last one
};

/// The operations of one lane to one peer, at the origin.
struct Stream {
  std::uint64_t begun = 0;       ///< number of the last operation that was begun
  std::uint64_t executed = 0;    ///< total that the target has told
  std::uint64_t confirmed = 0;   ///< number up to which all are executed, as answers tell, too
  Unconfirmed effects, all;      ///< what Lane::effects and Lane::all count of this stream
  RequestList waiting;           ///< not begun: in the order of their posts
  RequestList unacknowledged;    ///< begun, and `executed` must reach their number
  RequestList replies;           ///< begun, and their answer must come
  std::uint64_t gets = 0;        ///< in `replies`: the target may still read for them
  Request* large_put = nullptr;  ///< begun and not over: it is the last one
  int error = 0;                 ///< first one of an operation without completion, since the last flush
  // A program that flushes each operation will flush the next one: that one asks for its acknowledgement itself.
  std::uint64_t flushed_at = 0;  ///< `begun` at the last flush
  bool flushed_one = false;      ///< the last flush had one operation to cover
  std::uint64_t asking = 0;      ///< number of the last operation that asks so
};

/// A notification that is on its way to the program. As an operation it says that the program has taken it.
struct Notification : QueueNode, CallOp {
  Context* context = nullptr;
  canele_completion_t then{};
  int source = 0;
  std::uint32_t slot = 0;
  std::uint64_t immediate = 0, offset = 0, length = 0;
  Notification* next_free = nullptr;
};

/// What the target knows by an index.
struct Attachment {
  static constexpr std::uint32_t no_word = ~std::uint32_t{0};

  Handle region = Handle::none;
  std::uint32_t word = no_word;  ///< number of the permit's word
};

/// The words for permits that the target has for one origin.
struct PermitWords {
  std::vector<std::uint32_t> free;
  std::uint32_t next = 0;
  std::uint32_t generation = 0;  ///< of the last permit
};

/// The operations of one lane of a peer, at the target.
struct TargetLane {
  std::uint64_t executed = 0;  ///< total
  bool in_large_put = false;   ///< no other operation of the lane may come
};

/// One-sided operations between this rank and a peer.
struct PeerAccess {
  // As an origin.
  std::vector<Stream> streams;   ///< by lane
  std::vector<RemoteKey*> keys;  ///< by index; nullptr: it is free
  std::uint64_t attaches = 0;    ///< total
  std::vector<std::uint32_t> free_indexes;
  std::uint32_t next_index = 1;
  std::uint32_t replies = 0;
  std::uint64_t reply_bytes = 0;
  std::uint64_t notifications = 0, notifications_taken = 0;  ///< totals
  bool may_notify() const { return notifications - notifications_taken < most_notifications; }

  // As a target.
  std::vector<Attachment> attached;  ///< by index
  std::uint64_t attaches_seen = 0;   ///< total
  PermitWords permit_words;
  std::vector<TargetLane> lanes;          ///< by number
  std::vector<std::uint16_t> acks_due;    ///< lanes whose total is to be sent
  std::uint32_t serving = 0;              ///< answers that are being sent
  std::uint64_t notified = 0, taken = 0;  ///< totals of notifications: come, and taken by the program
  bool taken_due = false;                 ///< `taken` is to be sent
  bool totals_due = false;                ///< in State::totals_due

  Stream& stream(std::uint16_t lane) {
    if (streams.size() <= lane) streams.resize(lane + std::size_t{1});
    return streams[lane];
  }
};

/// Notifications on their way to the program. One task delivers them, in the order in which they have come. A spin lock
/// guards the list, because the task runs without the engine's lock.
struct Delivery : ltask::Task {
  std::atomic<bool> taken{false};
  bool running = false;  ///< the task is submitted, or runs
  Notification *first = nullptr, *last = nullptr;
  Context* context = nullptr;
};

struct Slot {
  canele_completion_t then{};
  bool open = false;
};

/// The data of a large put or get, which goes as a message. As an operation it says that the message has ended.
struct Transfer : CallOp {
  Request message{};             ///< send or receive; not posted: null
  Request* operation = nullptr;  ///< at the origin: the put or get
  // At the target.
  Region* region = nullptr;  ///< nullptr: the access is not allowed
  // Of a put.
  int error = 0;  ///< why it is not allowed
  wire::Head head{};
  std::uint32_t flags = 0;
  wire::Notification notification{};
  StridedMemory memory;  ///< that the put writes, or the get reads

  Transfer *next = nullptr, *previous = nullptr;  ///< in TransferList
};

/// Owns the transfers that have begun.
class TransferList {
 public:
  TransferList() = default;
  TransferList(const TransferList&) = delete;
  TransferList& operator=(const TransferList&) = delete;
  ~TransferList() {
    while (first_ != nullptr) end(*first_);
  }
  void begin(Transfer& one);
  void end(Transfer& one);
  /// Returns how many answers to gets of the rank have left, although their end was not handled yet.
  std::uint32_t answers_sent(int rank) const;

 private:
  Transfer* first_ = nullptr;
};

/// One-sided operations of an engine.
struct State {
  std::vector<Peer*> totals_due;           ///< peers to which a total is to be sent
  std::atomic<Session*> session{nullptr};  ///< owns the requests; made at first use
  Lane* default_lane = nullptr;            ///< set before `session`
  std::size_t piece_limit = 0;             ///< most bytes of data in one chunk; set before `session`
  bool copies_answers = false;             ///< packets have checksums, memory may change; set before `session`
  std::deque<Lane> lanes;                  ///< by number
  std::vector<RemoteKey*> mapped;          ///< keys of mapped memory
  HandleTable<Region> regions;
  HandleTable<Request> replies;  ///< gets and atomic operations that wait for an answer
  TransferList transfers;
  std::vector<Slot> slots;  ///< by number, which is 1 and up
  std::vector<std::uint16_t> free_lanes;
  std::vector<std::unique_ptr<Notification>> all_notifications;
  Notification* free_notifications = nullptr;
  Delivery delivery;
};

}  // namespace one_sided
}  // namespace canele::comm
