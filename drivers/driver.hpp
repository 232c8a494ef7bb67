// SPDX-License-Identifier: BSD-3-Clause
//
// The driver contract: all that the engine knows of a fabric, and all that a driver knows of the engine.
//
// Who: the engine calls Driver; a driver calls DriverEvents. A driver includes this header and nothing else of
//     Canelé, so that it can be built outside the tree.
// Threads: the engine serialises all calls on one instance, except wake() and, if declared, remote_copy(). Which
//     thread calls is open: the worker, a waiter, an application thread that sends. A driver needs no lock of its
//     own, and keeps nothing in thread-local memory.
// Surprise: a driver with `memory_only` set is called under the engine's lock. Its send and poll functions may
//     then make no system call, and copy at most max_packet bytes.
//
//   engine ──open/connect/send/bulk/poll/arm──▶ Driver ──packet/landing/sent/connected/failed──▶ DriverEvents
//
// Life of a peer on one driver (the driver keeps the state; the engine sees only the events):
//
//     unknown ──connect()──▶ connecting ──connected()──▶ up ──failed()──▶ failed (for good)
//        └────────(the peer connects first)──connected()──▶ up        close() from any state
//
// Rules that hold for every function:
//  - No function blocks, sleeps, throws, writes to stdout, or installs signal handlers.
//  - A driver calls back (DriverEvents) from inside poll() only. What it learns elsewhere it keeps until the next
//    poll(). poll() is not re-entered: a call back may call send functions, but not poll().
//  - Back-pressure has one answer: Status::full. It means "nothing was taken"; the driver then owes one
//    DriverEvents::ready(rank) when room appears. A send is taken whole or not at all. To try again before ready() is
//    allowed (the engine does so with remote_copy() only): it may succeed, and adds no second debt.
//  - Every byte from a peer is hostile: copy a header out of shared memory, check it, use the copy.
//    On nonsense the driver closes that peer and reports failed() with a reason that names it.
//  - After failed(rank, ...), and after Take::refused for a packet of that rank, the driver makes no further call back
//    for it, and every token handed in for it is considered returned, those of remote_copy() too. Sends answer failed.
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

/// Version of this contract; a driver built for another one is refused.
inline constexpr int contract_version = 13;

using Rank = std::int32_t;
inline constexpr Rank everybody = -1;    ///< all peers of a driver: see Driver::expose()
using Address = std::vector<std::byte>;  ///< what a peer needs to connect; at most 512 bytes; public (no secrets)
using Token = void*;                     ///< the engine's name for an operation; never dereferenced by the driver

enum class Status : std::uint8_t {
  ok,       ///< done: the memory handed in may be used again
  pending,  ///< taken; the memory stays with the driver until the token comes back
  full,     ///< nothing was taken; ready(rank) will follow
  failed    ///< this peer, or this driver, cannot do it (see each function)
};

/// How a sleeping engine learns that something arrived.
enum class WakeUp : std::uint8_t {
  descriptor,  ///< descriptor() becomes readable by itself (a socket)
  doorbell,    ///< descriptor() becomes readable because the peer's wake() rings it, once we have armed
  none         ///< nothing: the engine sleeps in timed steps
};

/// What a driver can do. Data, fixed after open(). The conformance kit calls every operation that is declared.
struct Capabilities {
  std::string_view name;            ///< "tcp": also how users name it
  bool memory_only = false;         ///< see "Surprise" above
  std::size_t max_inline = 0;       ///< send_inline() takes up to this many bytes; 0: not offered
  std::size_t max_packet = 0;       ///< the longest packet for send_packet() and reserve(); at least 1 KiB
  bool reserves = false;            ///< reserve()/commit(): packets are written straight into the driver's buffer
  bool bulk_stream = false;         ///< bulk_send(): pushes into memory that the receiver names (landing()). Required:
                                    ///< the way of large messages where nothing better is offered
  std::size_t max_bulk = 1u << 30;  ///< longest piece for bulk_send()
  bool get = false;                 ///< remote_copy(): the receiver pulls from memory that the sender has exposed
  bool put = false;                 ///< remote_copy(): the sender pushes into memory that the receiver has exposed
  bool copies_anywhere = false;     ///< remote_copy() may be called by any thread, and answers ok or failed at once
  bool copies_by_hardware = false;  ///< a pending remote_copy() goes on while no thread is in the driver
  std::size_t max_copy = 1u << 30;  ///< longest piece for remote_copy()
  std::size_t copy_from = 0;        ///< shorter messages cost both ends less by bulk_send() than by remote_copy()
  std::size_t copy_from_shared_core = 0;  ///< the same where threads that compute want this end's core: each piece of a
                                          ///< stream then costs a switch of threads, which one copy does not
  std::size_t shelf = 0;                  ///< expose() to `everybody`: up to so many bytes; 0: not offered
  std::size_t exposure_size = 0;          ///< the longest exposure that expose() writes; at most Exposure::max_size
  int shared_lines = 0;                   ///< shared_lines(): how many each end of a pair has; 0: none
  WakeUp wake_up = WakeUp::none;
  bool reaches_self = false;        ///< can send to the own rank
  bool reaches_local = false;       ///< can reach ranks of this host
  bool reaches_remote = false;      ///< can reach ranks of other hosts
  bool detects_failure = false;     ///< failed() comes by itself when a peer dies
  int max_instances = 0;            ///< open instances per process; 0: no limit
  std::uint32_t latency_ns = 1000;  ///< estimates for cost models until canele-perf sample has measured
  std::uint32_t gap_ns = 0;         ///< time between two packets worth waiting to aggregate; 0: never wait
  double bandwidth = 1.0;           ///< bytes per nanosecond
};

/// The engine's answer to a packet.
enum class Take : std::uint8_t {
  taken,
  later,   ///< not now: the driver keeps the packet and presents it again at a later poll(); until it is taken,
           ///< arm() answers false. No event: it does not count in what poll() returns
  refused  ///< nonsense: the driver closes the peer; it makes no further call back for it (the engine knows why)
};

/// Memory of this process that a peer may read or write while the exposure lasts: opaque bytes that travel to it, and a
/// handle that stays.
struct Exposure {
  static constexpr std::size_t max_size = 256;
  std::uint16_t size = 0;
  std::byte bytes[max_size];
  std::uint64_t handle = 0;           ///< for withdraw(); 0: there is nothing to withdraw
  const std::byte* copied = nullptr;  ///< of one to `everybody`: where what was copied lies, until withdraw()
};

/// One cache line that both processes of a pair may change, with atomic operations. Zero at first.
struct alignas(64) SharedLine {
  std::atomic<std::uint64_t> words[8];
};

/// The shared lines of a pair: `count` whose use we decide, and as many whose use the peer decides. Whatever the peer
/// writes there is to be checked, like any byte from it.
struct SharedLines {
  SharedLine* ours = nullptr;
  SharedLine* theirs = nullptr;
  int count = 0;  ///< capabilities().shared_lines, or 0: none with this peer
};

/// Packets of the same length that lie at equal distances, in the order in which they were sent.
struct PacketRun {
  const std::byte* first = nullptr;
  std::size_t apart = 0, length = 0;
  int count = 0;

  std::span<const std::byte> at(int i) const { return {first + static_cast<std::size_t>(i) * apart, length}; }
};
/// The engine's answer to a run: so many of its first packets are taken; and what it says of the one behind them, which
/// is `taken` if there is none.
struct RunTaken {
  int count = 0;
  Take next = Take::taken;
};

/// Which way remote_copy() goes: out of the peer's memory, or into it.
enum class Access : std::uint8_t { get, put };

/// What the engine does for a driver. All calls from inside poll().
class DriverEvents {
 public:
  /// A whole packet from `from`. The bytes are lent for the duration of the call, and may be memory that the peer can
  /// still change.
  virtual Take packet(Rank from, std::span<const std::byte> bytes) = 0;

  /// The same for several that are there already, each as if it were presented alone, for less. A driver need not use
  /// it.
  virtual RunTaken packets(Rank from, const PacketRun& run) {
    for (int i = 0; i < run.count; ++i) {
      if (const Take answer = packet(from, run.at(i)); answer != Take::taken) return {i, answer};
    }
    return {run.count, Take::taken};
  }

  /// A hint, of a driver that sees packets before their turn, and only while looks_ahead: a packet that will be
  /// presented later, at `bytes`, which the peer can still change. Each once, in their order, the one that is presented
  /// next included; at most look_ahead of them wait to be presented. It changes nothing.
  virtual void foresee([[maybe_unused]] Rank from, [[maybe_unused]] std::span<const std::byte> bytes) noexcept {}
  static constexpr int look_ahead = 24;
  /// Does it pay? The engine's to say, in packet() and packets().
  bool looks_ahead = false;

  /// Bytes [offset, offset + length) of bulk transfer `key` from `from` are at hand: where do they go?
  /// Writes at most `max` pieces, in order, and returns their number. The pieces are lent until landed() for them, the
  /// next landing() for that transfer, or failed(); until then the driver presents nothing else from this rank. They
  /// may cover less than asked (the driver asks again for the rest), never more. 0: nobody wants them (an unknown key):
  /// the driver drops all `length` bytes.
  virtual int landing(Rank from, std::uint64_t key, std::uint64_t offset, std::uint64_t length, iovec* out,
                      int max) = 0;

  /// `length` bytes at `offset` have been written where the last landing() for them said.
  virtual void landed(Rank from, std::uint64_t key, std::uint64_t offset, std::uint64_t length) = 0;

  /// An operation that answered `pending` is over; its memory belongs to the engine again.
  /// ok, or failed (a remote_copy() whose other end cannot be reached).
  virtual void done(Token token, Status status) = 0;

  /// Room again after `full`.
  virtual void ready(Rank rank) = 0;

  /// The peer can be sent to. Also when the peer connected first. Once per peer. The engine sends only after it; a
  /// driver answers what is tried before with full (and ready() follows this call) or with failed, and takes nothing.
  virtual void connected(Rank rank) = 0;

  /// The peer cannot be reached any more, or never could: refused, died, garbage. `reason` is for people.
  /// lost = true: the peer process is gone or misbehaved; false: this driver does not fit it (try the next one). That
  /// counts before connected(). After it either value is the loss of this rail, and of the peer if no other rail is up.
  virtual void failed(Rank rank, bool lost, std::string_view reason) = 0;

 protected:
  ~DriverEvents() = default;
};

/// What a driver may use of the world: no clock, no environment, no randomness except through this.
class DriverContext {
 public:
  virtual std::uint64_t now_ns() = 0;
  virtual std::uint64_t random() = 0;
  /// Value of setting CANELE_<name>, or `fallback`.
  virtual std::string setting(std::string_view name, std::string_view fallback) = 0;
  /// A rank of whom the launcher says that its process is dead; -1: none. Each once, to drivers that do not detect
  /// failures: such a driver asks in poll(), and failed(rank, true, ...) follows from some poll(), as soon as nothing
  /// writes into the engine's memory for that peer any more.
  virtual Rank next_death() { return -1; }
  /// One line, for people, at the given level (0 error, 1 warning, 2 info, 3 debug).
  virtual void log(int level, std::string_view text) = 0;

  Rank rank = 0;                      ///< own rank
  Rank size = 1;                      ///< ranks in the job
  bool crowded = false;               ///< more ranks on this host than processing units: who finds nothing gives way
  std::uint64_t job = 0;              ///< identifies the job; the same in every rank
  std::uint64_t incarnation = 0;      ///< identifies this process; another one in every start
  std::string argument;               ///< what the user wrote after the driver's name and a colon; "" nothing
  std::span<const std::byte> secret;  ///< 16 bytes shared by the job; never to be sent or logged
  DriverEvents* events = nullptr;

 protected:
  ~DriverContext() = default;
};

/// A count that one thread at a time changes, and any thread reads.
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

/// A driver instance. Functions ending in _impl are written by the driver; the engine calls the wrappers, which check
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
  Counters counters;  ///< written under the same serialisation as the calls, `*_received` by the engine under its lock
  /// Calls of poll() so far. Any thread.
  std::uint64_t polls() const { return polls_.load(std::memory_order_relaxed); }

  /// Starts the driver: listens, allocates. Fills capabilities_ and writes the address that peers connect to.
  /// failed: *reason says why this machine cannot run it ("no such interface eth7"); the instance is then destroyed.
  /// Called once, first. `context` outlives the driver.
  Status open(DriverContext& context, Address* address, std::string* reason) {
    const Status status = open_impl(context, address, reason);
    assert(status == Status::failed || capabilities_.max_packet >= 1024);
    return status;
  }

  /// Begins to connect to `peer`, whose open() wrote `address`. pending: connected() or failed() will come from poll().
  /// failed: this driver cannot reach such an address (another host); nothing will come. Once per peer.
  Status connect(Rank peer, std::span<const std::byte> address) { return connect_impl(peer, address); }

  /// Sends head + body (together 1 … max_inline bytes) as one packet. ok or full. The cheapest way: fits a few cache
  /// lines or an inject.
  Status send_inline(Rank peer, const void* head, std::size_t head_size, const void* body, std::size_t body_size) {
    assert(head_size + body_size <= capabilities_.max_inline);
    return count_send(send_inline_impl(peer, head, head_size, body, body_size), head_size + body_size);
  }

  /// Sends `count` pieces (together 1 … max_packet bytes) as one packet. ok: copied or written; pending: the pieces
  /// stay in use until done(token); full. The array of pieces itself may go after the call.
  Status send_packet(Rank peer, const iovec* pieces, int count, std::size_t size, Token token) {
    assert(size > 0 && size <= capabilities_.max_packet);
    return count_send(send_packet_impl(peer, pieces, count, size, token), size);
  }

  /// Room for a packet of up to `size` bytes in the driver's own buffer, or an empty span (= full).
  /// At most one reservation per driver is open; commit() or a commit of 0 bytes (= give it back) ends it.
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

  /// Pushes bytes [offset, offset + size) of transfer `key` to the peer, which asks its engine where they go. `key` is
  /// the peer's name for it. Same answers as send_packet, but a memory_only driver never answers pending. In order with
  /// packets of the same peer. size <= max_bulk.
  Status bulk_send(Rank peer, std::uint64_t key, std::uint64_t offset, const iovec* pieces, int count, std::size_t size,
                   Token token) {
    assert(capabilities_.bulk_stream && size > 0);
    const Status status = bulk_send_impl(peer, key, offset, pieces, count, size, token);
    if (status == Status::full) ++counters.full;
    if (status == Status::ok || status == Status::pending) counters.bulk_bytes_sent += size;
    return status;
  }

  /// Makes memory accessible to the peer, for one kind of access; *exposure travels to it. ok, or failed: not possible
  /// for this memory (too many pieces). A system-call driver may register the memory here. The engine keeps the memory
  /// alive until the peer has said that it is done, or is dead, and then calls withdraw() with the handle.
  /// To `everybody`, for get: the pieces (together at most capabilities().shelf bytes) are copied at once to where
  /// every peer can read them, by less than expose() costs it; they need not be kept, and the handle is not 0. failed:
  /// no room now. By any thread, beside any other function; so is withdraw() of it.
  Status expose(Rank peer, Access access, const iovec* pieces, int count, Exposure* exposure) {
    assert(access == Access::get ? capabilities_.get : capabilities_.put);
    assert(peer != everybody || (access == Access::get && capabilities_.shelf != 0));
    const Status status = expose_impl(peer, access, pieces, count, exposure);
    assert(status == Status::failed || exposure->size <= capabilities_.exposure_size);
    return status;
  }

  /// Ends an exposure. Not called for handle 0.
  void withdraw(std::uint64_t handle) { withdraw_impl(handle); }

  /// Copies bytes [offset, offset + size) between memory that the peer has exposed and `pieces`; size <= max_copy. ok;
  /// pending: done(token) follows; full; or failed: the other end is gone, or the exposure makes no sense. With
  /// copies_anywhere: by several threads at once and beside any other function of this instance, ok or failed only; it
  /// may make system calls even in a memory_only driver, and does not call back.
  Status remote_copy(Rank peer, Access access, std::span<const std::byte> exposure, std::uint64_t offset,
                     const iovec* pieces, int count, std::size_t size, Token token) {
    assert(access == Access::get ? capabilities_.get : capabilities_.put);
    assert(size > 0 && size <= capabilities_.max_copy);
    return remote_copy_impl(peer, access, exposure, offset, pieces, count, size, token);
  }

  /// Lines that both processes can change: with them sender and receiver of a large message agree, without a packet,
  /// on who copies what. Valid from connected() until close(), also after failed(), for any
  /// thread. count 0: there are none.
  SharedLines shared_lines(Rank peer) const {
    const auto found = shared_lines_.find(peer);
    return found != shared_lines_.end() ? found->second : SharedLines{};
  }

  /// Which process of that rank this driver is connected to: its DriverContext::incarnation, proven when they met.
  /// 0: the driver cannot tell. Valid from connected() on. So the engine notices that two drivers have met two
  /// processes of one rank: the launcher has started it again.
  std::uint64_t incarnation_of(Rank peer) const {
    const auto found = incarnations_.find(peer);
    return found != incarnations_.end() ? found->second : 0;
  }

  /// True if what goes to that rank does not leave this host: then all such links share its processors, not a network,
  /// and whoever hands data on for others saves nothing. Valid from connected() on; memory-only drivers need not tell.
  bool is_local(Rank peer) const { return local_.contains(peer); }

  /// Looks for arrivals and completions, and reports them; at most about `budget` packets. Returns how many events it
  /// reported (any call back but a packet answered `later`): 0 means truly nothing happened. Pushes what was stuck
  /// (short writes) as well.
  int poll(int budget) {
    polls_.store(polls() + 1, std::memory_order_relaxed);
    return poll_impl(budget);
  }

  /// The descriptor to sleep on (WakeUp::descriptor and doorbell), readable when poll() has something to do. Constant
  /// after open().
  int descriptor() const { return descriptor_impl(); }

  /// The engine is about to sleep. After arm(), any arrival makes descriptor() readable. false: something is there
  /// already, poll first (the driver is then not armed). Called with no other call in progress on this instance.
  bool arm() { return arm_impl(true); }

  /// The engine is awake: arrivals need not make descriptor() readable. Clears a doorbell that rang.
  void disarm() { arm_impl(false); }

  /// True if the last send to `peer` found its receiver asleep, so that wake(peer) is due. Cleared by the call. Memory
  /// only.
  bool wants_wake(Rank peer) {
    if (wakes_due_ == 0 || !wants_wake_impl(peer)) [[likely]]
      return false;
    --wakes_due_;
    return true;
  }

  /// Rings the peer's doorbell: one system call. By any thread, beside any other function; outside the engine's lock.
  void wake(Rank peer) { wake_impl(peer); }

  /// Closes everything; peers that are still up see the end of the connection after all that was sent. Nothing is
  /// called back. The last call, and once.
  void close() { close_impl(); }

 protected:
  /// Before connected(): the pair has shared lines.
  void share_lines(Rank peer, SharedLines lines) { shared_lines_[peer] = lines; }
  /// Before connected(): which process that is.
  void met(Rank peer, std::uint64_t incarnation) { incarnations_[peer] = incarnation; }
  /// Before connected(): what goes there does not leave this host.
  void stays_here(Rank peer) { local_.insert(peer); }

  Capabilities capabilities_;
  int wakes_due_ = 0;  ///< peers for which wants_wake_impl() has yet to say true; the driver raises it

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
  virtual Status expose_impl(Rank, Access, const iovec*, int, Exposure*) { return Status::failed; }
  virtual void withdraw_impl(std::uint64_t) {}
  virtual Status remote_copy_impl(Rank, Access, std::span<const std::byte>, std::uint64_t, const iovec*, int,
                                  std::size_t, Token) {
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

/// How a driver is found: each family defines one, listed in comm's registry (or exported by a module).
struct DriverFactory {
  int contract;              ///< contract_version at the time it was compiled
  std::string_view name;     ///< "tcp"
  std::string_view summary;  ///< one line for canele-info
  std::unique_ptr<Driver> (*create)();
  /// "" if the driver can run on this machine, else why not. Cheap; leaves nothing behind.
  std::string (*unavailable)();
};

/// In a driver that is built as a module (canele-driver-<name>.so), once: how the engine finds its factory. Modules are
/// looked for in the directories of CANELE_DRIVER_PATH, then in canele/ beside libcanele.
#define CANELE_DRIVER_MODULE(factory)                                                                             \
  extern "C" __attribute__((visibility("default"))) const canele::drivers::DriverFactory* canele_driver_module(); \
  extern "C" const canele::drivers::DriverFactory* canele_driver_module() { return &(factory); }

}  // namespace canele::drivers
