// SPDX-License-Identifier: BSD-3-Clause
//
// The driver contract: everything that the engine knows of a fabric, and everything that a driver knows of the engine.
//
// The engine calls Driver; a driver calls DriverEvents. A driver includes this header and no other header of Canelé, so
// that it can be built outside the tree.
//
//   engine ──open/connect/send/bulk/poll/arm──▶ Driver ──packet/bulk_written/done/connected/failed──▶ DriverEvents
//
// State of a peer in one driver (the driver keeps the state; the engine sees only the events):
//
//     unknown ──connect()──▶ connecting ──connected()──▶ up ──failed()──▶ failed (for good)
//        └────────(the peer connects first)──connected()──▶ up        close() from any state
//
// Threading: the engine serialises all calls on one instance, except wake() and, if the driver declares it,
// rma(). Any thread may make a call: the worker, a waiter, or an application thread that sends. A driver
// therefore needs no lock of its own and keeps nothing in thread-local storage.
//
// Memory-only drivers: a driver with `memory_only` set is called under the engine's lock. Its send and poll functions
// must then make no system call, and copy at most max_packet bytes.
//
// Rules for every function:
//  - No function blocks, sleeps, throws, writes to stdout, or installs signal handlers.
//  - A driver calls DriverEvents from inside poll() only. It stores what it learns elsewhere until the next poll().
//    poll() is not re-entered: a callback may call send functions, but not poll().
//  - Back-pressure has one answer: Status::full. It means that the driver took nothing. The driver then owes one
//    DriverEvents::ready(rank) when room appears. A send is taken whole or not at all. The engine may retry before
//    ready() (it does so with rma() only). A retry may succeed, and adds no second ready().
//  - Every byte from a peer is untrusted: copy a header out of shared memory, check the copy, use the copy. On a
//    malformed message the driver closes that peer and reports failed() with a reason that names the violation.
//  - After failed(rank, ...), and after Take::rejected for a packet of that rank, the driver makes no further callback
//    for that rank. Every token handed in for it counts as returned, the tokens of rma() included. Sends to it
//    answer failed.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace canele::drivers {

/// Version of this contract. The engine rejects a driver that was built for another version.
inline constexpr int contract_version = 15;

using Rank = std::int32_t;
inline constexpr Rank all_peers = -1;    ///< see Driver::register_memory().
using Address = std::vector<std::byte>;  ///< what a peer needs to connect; at most 512 bytes; public (no secrets).
using Token = void*;                     ///< the engine's name for an operation; the driver never dereferences it.

enum class Status : std::uint8_t {
  ok,       ///< done: the caller may use the memory that it handed in again.
  pending,  ///< taken; the driver uses the memory until it returns the token.
  full,     ///< nothing was taken; ready(rank) will follow.
  failed    ///< this peer, or this driver, cannot do it (see each function).
};

/// How a sleeping engine learns that data has arrived.
enum class WakeUp : std::uint8_t {
  descriptor,  ///< descriptor() becomes readable by itself (a socket).
  doorbell,    ///< descriptor() becomes readable when the peer calls wake(), once this end is armed.
  none         ///< no notification: the engine sleeps in timed steps.
};

/// What a driver can do: plain data, fixed after open(). The conformance kit calls every operation that is declared
/// here.
struct Capabilities {
  std::string_view name;       ///< for example "tcp"; users select the driver by this name.
  bool memory_only = false;    ///< called under the engine's lock: no system calls (see the top of this file).
  std::size_t max_inline = 0;  ///< largest packet for send_inline(), in bytes; 0: not supported.
  std::size_t max_packet = 0;  ///< largest packet for send_packet() and reserve(), in bytes; at least 1 KiB.
  bool reserves = false;       ///< reserve()/commit() work: the engine writes a packet into the driver's buffer.
  bool bulk_stream =
      false;  ///< supports bulk_send(): writes into memory that the receiver names in bulk_destination().
              ///< Required: large messages use it where the driver supports nothing better.
  std::size_t max_bulk = 1u << 30;      ///< largest piece for bulk_send(), in bytes.
  bool get = false;                     ///< rma() can read from memory that the peer (the sender) has registered.
  bool put = false;                     ///< rma() can write into memory that the peer (the receiver) has registered.
  bool rma_any_thread = false;          ///< any thread may call rma(), which then answers ok or failed at once.
  bool rma_by_hardware = false;         ///< a pending rma() goes on while no thread is in the driver.
  std::size_t max_rma = 1u << 30;       ///< largest piece for rma(), in bytes.
  std::size_t rma_min = 0;              ///< in bytes; below it, bulk_send() costs both ends less than rma().
  std::size_t rma_min_shared_core = 0;  ///< replaces rma_min where compute threads want this end's core: each piece
                                        ///< of a stream then costs a thread switch, which one copy avoids.
  bool rma_min_is_guess = false;        ///< the engine measures which is better, and ignores rma_min.
  std::size_t broadcast_segment = 0;    ///< most bytes that register_memory() for `all_peers` takes; 0: not supported.
  std::size_t rkey_size =
      0;                 ///< largest memory key that register_memory() writes, in bytes; at most MemoryKey::max_size.
  int shared_lines = 0;  ///< how many SharedLine each end of a pair has; 0: none.
  WakeUp wake_up = WakeUp::none;
  bool reaches_self = false;        ///< can send to its own rank.
  bool reaches_local = false;       ///< can reach ranks of this host.
  bool reaches_remote = false;      ///< can reach ranks of other hosts.
  bool detects_failure = false;     ///< reports failed() by itself when a peer dies.
  int max_instances = 0;            ///< open instances per process; 0: no limit.
  std::uint32_t latency_ns = 1000;  ///< estimate for the cost models, used until canele-perf sample has measured.
  std::uint32_t gap_ns = 0;         ///< time between two packets that is worth waiting to aggregate; 0: never wait.
  double bandwidth = 1.0;           ///< bytes per nanosecond.
};

/// The engine's answer to a packet.
enum class Take : std::uint8_t {
  taken,
  retry,  ///< not now: the driver keeps the packet and presents it again at a later poll(). Until the packet is taken,
          ///< arm() answers false. It is no event: poll() does not count it.
  rejected  ///< malformed: the driver closes the peer and makes no further callback for it (the engine already knows
            ///< the reason).
};

/// Key to registered memory of this process, which a peer may read or write until deregister() (UCX: a remote key). The
/// bytes are opaque and travel to the peer; the handle stays in this process.
struct MemoryKey {
  static constexpr std::size_t max_size = 256;
  std::uint16_t size = 0;
  std::byte bytes[max_size];
  std::uint64_t handle = 0;  ///< for deregister(); 0: nothing to deregister
  /// For the key for `all_peers`: address of the copied data, valid until deregister().
  const std::byte* copied = nullptr;
};

/// One cache line that both processes of a pair may change, with atomic operations. Initially zero.
struct alignas(64) SharedLine {
  std::atomic<std::uint64_t> words[8];
};

/// The shared lines of a pair: this end decides the use of `count` lines, and the peer decides the use of as many
/// others. Check whatever the peer writes there, like any byte from a peer.
struct SharedLines {
  SharedLine* ours = nullptr;
  SharedLine* theirs = nullptr;
  int count = 0;  ///< capabilities().shared_lines, or 0: none with this peer
};

/// Packets of equal length that lie at equal distances, in the order in which they were sent.
struct PacketRun {
  const std::byte* first = nullptr;
  std::size_t apart = 0, length = 0;
  int count = 0;

  std::span<const std::byte> at(int i) const { return {first + static_cast<std::size_t>(i) * apart, length}; }
};
/// The engine's answer to a run: the first `count` packets are taken, and `next` is its answer to the packet behind
/// them. `next` is `taken` if no packet follows.
struct RunTaken {
  int count = 0;
  Take next = Take::taken;
};

/// Operations of rma(): get reads the peer's memory, put writes it.
enum class RmaOp : std::uint8_t { get, put };

/// What the engine does for a driver. The driver makes all these calls from inside poll().
class DriverEvents {
 public:
  /// Delivers a whole packet from `from`. The bytes are lent for the duration of the call, and may be memory that the
  /// peer can still change.
  virtual Take packet(Rank from, std::span<const std::byte> bytes) = 0;

  /// Delivers several packets that have already arrived, each as if packet() delivered it alone, at a lower cost. A
  /// driver need not use this function.
  virtual RunTaken packets(Rank from, const PacketRun& run) {
    for (int i = 0; i < run.count; ++i) {
      if (const Take answer = packet(from, run.at(i)); answer != Take::taken) return {i, answer};
    }
    return {run.count, Take::taken};
  }

  /// Hints at a packet that the driver will present later. `bytes` is memory that the peer can still change. For
  /// drivers that see packets before their turn, and only while wants_hints is set. The driver hints at each packet
  /// once, in order, including the packet that it presents next. At most hints_ahead hinted packets wait to be
  /// presented. The hint changes no state.
  virtual void prefetch_hint([[maybe_unused]] Rank from, [[maybe_unused]] std::span<const std::byte> bytes) noexcept {}
  static constexpr int hints_ahead = 24;
  /// True if hints are worthwhile. The engine sets it in packet() and packets().
  bool wants_hints = false;

  /// Asks where bytes [offset, offset + length) of bulk transfer `transfer_id` from `from` go; they are ready to be
  /// written. Writes at most `max` pieces to `out`, in order, and returns their number. The pieces are lent until
  /// bulk_written() for them, the next bulk_destination() for that transfer, or failed(). Until then the driver
  /// presents nothing else from this rank. The pieces may cover less than `length` bytes, never more: the driver then
  /// asks again for the rest. 0 means that no receive wants the bytes (an unknown transfer): the driver drops all
  /// `length` bytes.
  virtual int bulk_destination(Rank from, std::uint64_t transfer_id, std::uint64_t offset, std::uint64_t length,
                               iovec* out, int max) = 0;

  /// Reports that `length` bytes at `offset` have been written where the last bulk_destination() for them said.
  virtual void bulk_written(Rank from, std::uint64_t transfer_id, std::uint64_t offset, std::uint64_t length) = 0;

  /// Reports that an operation that answered `pending` is complete; its memory belongs to the engine again. `status` is
  /// ok, or failed (an rma() whose other end cannot be reached).
  virtual void done(Token token, Status status) = 0;

  /// Reports that there is room again after `full`.
  virtual void ready(Rank rank) = 0;

  /// Reports that the engine can send to the peer, also when the peer connected first. Called once per peer. The engine
  /// sends only after this call. The driver answers an earlier attempt with full (ready() then follows this call) or
  /// with failed, and takes nothing.
  virtual void connected(Rank rank) = 0;

  /// Reports that the peer cannot be reached any more, or never could: it rejected the connection, died, or sent
  /// malformed data. `reason` is text for users. lost = true: the peer process is gone or misbehaved. lost = false:
  /// this driver does not fit the peer, and the engine tries the next driver. The distinction counts before connected()
  /// only. After connected() either value is the loss of this rail, and the loss of the peer if no other rail is up.
  virtual void failed(Rank rank, bool lost, std::string_view reason) = 0;

 protected:
  ~DriverEvents() = default;
};

/// What a driver may use of its environment. It reaches the clock, the settings and random numbers only through this
/// class.
class DriverContext {
 public:
  /// Returns the time in nanoseconds; it never goes back.
  virtual std::uint64_t now_ns() = 0;
  virtual std::uint64_t random() = 0;
  /// Returns the value of setting CANELE_<name>, or `fallback`.
  virtual std::string setting(std::string_view name, std::string_view fallback) = 0;
  /// Returns a rank whose process is dead according to the launcher, or -1: none. Each dead rank is returned once, to
  /// drivers that do not detect failures. Such a driver asks in poll(). It then calls failed(rank, true, ...) from some
  /// poll(), as soon as nothing writes into the engine's memory for that peer any more.
  virtual Rank next_failed_rank() { return -1; }
  /// Writes one line for users at the given level (0 error, 1 warning, 2 info, 3 debug).
  virtual void log(int level, std::string_view text) = 0;

  Rank rank = 0;                      ///< this process's rank.
  Rank size = 1;                      ///< number of ranks in the job.
  bool oversubscribed = false;        ///< this host has more ranks than processing units. A thread that finds no
                                      ///< work then yields its core.
  std::uint64_t job = 0;              ///< identifies the job; equal in all ranks.
  std::uint64_t incarnation = 0;      ///< identifies this process; every start of a rank has another one.
  std::string argument;               ///< what the user wrote after the driver's name and a colon; "": nothing.
  std::span<const std::byte> secret;  ///< 16 bytes shared by the job; never send or log them.
  DriverEvents* events = nullptr;

 protected:
  ~DriverContext() = default;
};

/// A counter that one thread at a time changes, and any thread reads.
class Count {
 public:
  Count() = default;
  Count(std::uint64_t value) : value_(value) {}
  Count(const Count& other) : value_(std::uint64_t{other}) {}
  Count& operator=(const Count& other) {
    value_.store(other, std::memory_order_relaxed);
    return *this;
  }
  operator std::uint64_t() const { return value_.load(std::memory_order_relaxed); }
  Count& operator+=(std::uint64_t more) {
    value_.store(*this + more, std::memory_order_relaxed);
    return *this;
  }
  Count& operator-=(std::uint64_t less) { return *this += ~less + 1; }
  Count& operator++() { return *this += 1; }
  Count& operator--() { return *this -= 1; }

 private:
  std::atomic<std::uint64_t> value_ = 0;
};

/// A driver instance. A driver implements the functions that end in _impl; the engine calls the wrappers, which check
/// and count.
class Driver {
 public:
  struct Counters {
    Count packets_sent, packets_received, bytes_sent, bytes_received;
    Count full, bulk_bytes_sent, bulk_bytes_received;
  };

  Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  virtual ~Driver() = default;

  const Capabilities& capabilities() const { return capabilities_; }
  Counters counters;  ///< written under the serialisation of the calls, `*_received` by the engine under its lock
  /// Returns the number of calls of poll() so far. Any thread.
  std::uint64_t polls() const { return polls_.load(std::memory_order_relaxed); }

  /// Starts the driver: it listens and allocates. Fills capabilities_ and writes the address that peers connect to.
  /// failed: *reason says why this machine cannot run the driver ("no such interface eth7"); the engine then destroys
  /// the instance. Called once, first. `context` outlives the driver.
  Status open(DriverContext& context, Address* address, std::string* reason) {
    const Status status = open_impl(context, address, reason);
    assert(status == Status::failed || capabilities_.max_packet >= 1024);
    return status;
  }

  /// Begins to connect to `peer`, whose open() wrote `address`. pending: connected() or failed() will come from poll().
  /// failed: this driver cannot reach such an address (another host), and no event will come. Called once per peer.
  Status connect(Rank peer, std::span<const std::byte> address) { return connect_impl(peer, address); }

  /// Sends head + body (together 1 … max_inline bytes) as one packet. Answers ok or full. This is the cheapest send:
  /// the packet fits a few cache lines or one inject.
  Status send_inline(Rank peer, const void* head, std::size_t head_size, const void* body, std::size_t body_size) {
    assert(head_size + body_size <= capabilities_.max_inline);
    return count_send(send_inline_impl(peer, head, head_size, body, body_size), head_size + body_size);
  }

  /// Sends `count` pieces (together 1 … max_packet bytes) as one packet. ok: the pieces were copied or written.
  /// pending: the pieces stay in use until done(token). full: nothing was taken. The caller may free the array of
  /// pieces itself after the call.
  Status send_packet(Rank peer, const iovec* pieces, int count, std::size_t size, Token token) {
    assert(size > 0 && size <= capabilities_.max_packet);
    return count_send(send_packet_impl(peer, pieces, count, size, token), size);
  }

  /// Returns room for a packet of up to `size` bytes in the driver's own buffer, or an empty span (= full). At most one
  /// reservation per driver is open. commit() ends it; a commit of 0 bytes gives the room back.
  std::span<std::byte> reserve(Rank peer, std::size_t size) {
    assert(capabilities_.reserves && size <= capabilities_.max_packet);
    auto room = reserve_impl(peer, size);
    counters.full += room.empty();
    return room;
  }
  void commit(Rank peer, std::size_t size) {
    commit_impl(peer, size);
    if (size > 0) count_send(Status::ok, size);
  }

  /// Writes bytes [offset, offset + size) of transfer `transfer_id` to the peer, whose driver asks its engine where
  /// they go. `transfer_id` is the peer's name for the transfer. The answers are those of send_packet(), but a
  /// memory_only driver never answers pending. The bytes stay in order with packets to the same peer. size <= max_bulk.
  Status bulk_send(Rank peer, std::uint64_t transfer_id, std::uint64_t offset, const iovec* pieces, int count,
                   std::size_t size, Token token) {
    assert(capabilities_.bulk_stream && size > 0);
    const Status status = bulk_send_impl(peer, transfer_id, offset, pieces, count, size, token);
    if (status == Status::full) ++counters.full;
    if (status == Status::ok || status == Status::pending) counters.bulk_bytes_sent += size;
    return status;
  }

  /// Makes memory accessible to the peer for one kind of operation; the engine sends *rkey to the peer. Answers ok, or
  /// failed: not possible for this memory (too many pieces). A driver that makes system calls may register the memory
  /// here. The engine keeps the memory alive until the peer has said that it is done, or is dead. It then calls
  /// deregister() with the handle.
  ///
  /// With peer = `all_peers`, for get only: the driver copies the pieces at once to where every peer can read them. The
  /// pieces together have at most capabilities().broadcast_segment bytes. The copy costs the peers less than
  /// register_memory() for each of them. The caller need not keep the pieces, and the handle is not 0. failed: no room
  /// at present. Any thread may call register_memory() for `all_peers` and deregister() of its handle, concurrently
  /// with any other function.
  Status register_memory(Rank peer, RmaOp op, const iovec* pieces, int count, MemoryKey* rkey) {
    assert(op == RmaOp::get ? capabilities_.get : capabilities_.put);
    assert(peer != all_peers || (op == RmaOp::get && capabilities_.broadcast_segment != 0));
    const Status status = register_memory_impl(peer, op, pieces, count, rkey);
    assert(status == Status::failed || rkey->size <= capabilities_.rkey_size);
    return status;
  }

  /// Ends a registration. Not called for handle 0.
  void deregister(std::uint64_t handle) { deregister_impl(handle); }

  /// Copies bytes [offset, offset + size) between memory that the peer has registered and `pieces`; size <= max_rma.
  /// ok: copied. pending: done(token) follows. full: nothing was taken. failed: the other end is gone, or the key is
  /// malformed. With rma_any_thread, several threads may call it at once, concurrently with any other function of this
  /// instance. It then answers ok or failed only and makes no callback. It may make system calls even in a memory_only
  /// driver.
  Status rma(Rank peer, RmaOp op, std::span<const std::byte> rkey, std::uint64_t offset, const iovec* pieces, int count,
             std::size_t size, Token token) {
    assert(op == RmaOp::get ? capabilities_.get : capabilities_.put);
    assert(size > 0 && size <= capabilities_.max_rma);
    return rma_impl(peer, op, rkey, offset, pieces, count, size, token);
  }

  /// Returns the cache lines that both processes of the pair can change. Through them, sender and receiver of a large
  /// message agree on which end copies which chunk, without a packet. Valid from connected() until close(), also after
  /// failed(), for any thread. count 0: there are none.
  SharedLines shared_lines(Rank peer) const {
    const auto found = shared_lines_.find(peer);
    return found != shared_lines_.end() ? found->second : SharedLines{};
  }

  /// Returns which process of that rank this driver is connected to: its DriverContext::incarnation, proven in the
  /// handshake. 0: the driver cannot tell. Valid from connected() on. With it the engine notices that two drivers are
  /// connected to two processes of one rank, because the launcher has restarted the rank.
  std::uint64_t incarnation_of(Rank peer) const {
    const auto found = incarnations_.find(peer);
    return found != incarnations_.end() ? found->second : 0;
  }

  /// Returns true if data for that rank does not leave this host. All such links share the host's processors, not a
  /// network, so a rank that forwards data for others saves nothing. Valid from connected() on; memory-only drivers
  /// need not set it.
  bool is_local(Rank peer) const { return local_.contains(peer); }

  /// Looks for arrivals and completions, and reports them; at most about `budget` packets. Also continues stalled
  /// output (short writes). Returns how many events it reported: every callback counts, except a packet that was
  /// answered `retry`. 0 means that truly nothing happened.
  int poll(int budget) {
    polls_.store(polls() + 1, std::memory_order_relaxed);
    return poll_impl(budget);
  }

  /// Returns the descriptor to sleep on (WakeUp::descriptor and doorbell). It is readable when poll() has something to
  /// do. Constant after open().
  int descriptor() const { return descriptor_impl(); }

  /// Prepares for sleep: after arm(), any arrival makes descriptor() readable. Returns false if something has already
  /// arrived: the engine must poll first, and the driver is not armed. Called with no other call in progress on this
  /// instance.
  bool arm() { return arm_impl(true); }

  /// Ends the sleep: arrivals need not make descriptor() readable any more. Clears a doorbell that rang.
  void disarm() { arm_impl(false); }

  /// Returns true if the last send to `peer` found its receiver asleep, so that wake(peer) is due. The call clears the
  /// condition. Memory-only drivers only.
  bool wants_wake(Rank peer) {
    if (wakes_due_ == 0 || !wants_wake_impl(peer)) [[likely]]
      return false;
    --wakes_due_;
    return true;
  }

  /// Rings the peer's doorbell: one system call. Any thread may call it, concurrently with any other function, outside
  /// the engine's lock.
  void wake(Rank peer) { wake_impl(peer); }

  /// Closes everything. Peers that are still up see the end of the connection after everything that was sent. Makes no
  /// callback. Called once, last.
  void close() { close_impl(); }

 protected:
  /// Records that the pair has shared lines. Call before connected().
  void share_lines(Rank peer, SharedLines lines) { shared_lines_[peer] = lines; }
  /// Records which process that rank is. Call before connected().
  void met(Rank peer, std::uint64_t incarnation) { incarnations_[peer] = incarnation; }
  /// Records that data for that rank does not leave this host. Call before connected().
  void stays_here(Rank peer) { local_.insert(peer); }

  Capabilities capabilities_;
  int wakes_due_ = 0;  ///< peers for which wants_wake_impl() has yet to return true; the driver raises it

 private:
  Status count_send(Status status, std::size_t size) {
    if (status == Status::full) {
      ++counters.full;
    } else if (status != Status::failed) {
      ++counters.packets_sent;
      counters.bytes_sent += size;
    }
    return status;
  }

  virtual Status open_impl(DriverContext&, Address*, std::string* reason) = 0;
  virtual Status connect_impl(Rank, std::span<const std::byte> address) = 0;
  virtual Status send_inline_impl(Rank, const void*, std::size_t, const void*, std::size_t) { return Status::failed; }
  virtual Status send_packet_impl(Rank, const iovec*, int, std::size_t, Token) = 0;
  virtual std::span<std::byte> reserve_impl(Rank, std::size_t) { return {}; }
  virtual void commit_impl(Rank, std::size_t) {}
  virtual Status bulk_send_impl(Rank, std::uint64_t, std::uint64_t, const iovec*, int, std::size_t, Token) {
    return Status::failed;
  }
  virtual Status register_memory_impl(Rank, RmaOp, const iovec*, int, MemoryKey*) { return Status::failed; }
  virtual void deregister_impl(std::uint64_t) {}
  virtual Status rma_impl(Rank, RmaOp, std::span<const std::byte>, std::uint64_t, const iovec*, int, std::size_t,
                          Token) {
    return Status::failed;
  }
  virtual int poll_impl(int budget) = 0;
  virtual int descriptor_impl() const { return -1; }
  virtual bool arm_impl(bool /*on*/) { return true; }
  virtual bool wants_wake_impl(Rank) { return false; }
  virtual void wake_impl(Rank) {}
  virtual void close_impl() = 0;

  std::map<Rank, SharedLines> shared_lines_;
  std::map<Rank, std::uint64_t> incarnations_;
  std::set<Rank> local_;
  std::atomic<std::uint64_t> polls_{0};
};

/// An address under which ranks of other hosts may reach this one; for users (canele-info --network).
struct NetworkAddress {
  std::string interface;
  std::string address;  ///< for example "10.1.0.7/24".
  std::string kind;     ///< in the driver's words, for example "physical".
  bool carrier = true;  ///< the link is up.
  unsigned speed = 0;   ///< in Mbit/s; 0: not known.
};

/// How the engine finds a driver. Each family defines one factory, listed in comm's registry (or exported by a module).
struct DriverFactory {
  int contract;              ///< contract_version when the driver was compiled.
  std::string_view name;     ///< for example "tcp".
  std::string_view summary;  ///< one line for canele-info
  std::unique_ptr<Driver> (*create)();
  /// Returns "" if the driver can run on this machine, else why not. Cheap, and leaves nothing behind.
  std::string (*unavailable)();
  /// Returns the addresses that the driver publishes by default, in the order in which other hosts should try them.
  /// nullptr: the driver has none to choose from.
  std::vector<NetworkAddress> (*network)() = nullptr;
};

#define CANELE_DRIVER_MODULE(factory)                                                                             \
  extern "C" __attribute__((visibility("default"))) const canele::drivers::DriverFactory* canele_driver_module(); \
  extern "C" const canele::drivers::DriverFactory* canele_driver_module() { return &(factory); }

}  // namespace canele::drivers
