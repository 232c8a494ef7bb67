// SPDX-License-Identifier: BSD-3-Clause
//
// Context: what the floors from `link` to `multicast` may touch of an engine. The engine is derived from it.
//
// The thread that holds `lock` uses the fields below "under the lock"; each of the others names its rule. A function of
// these floors has the lock, unless its comment says otherwise.
//
// What the context asks of floors above is virtual. The engine answers (engine/dispatch.cpp), so that no file names a
// floor above its own. None of these calls is on the fast path of a small message.
#pragma once

#include <cassert>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/bootstrap/bootstrap.hpp"
#include "comm/config/settings.hpp"
#include "comm/matching/alternatives/cache_warmer.hpp"
#include "comm/matching/matcher.hpp"
#include "comm/observe/counters.hpp"
#include "comm/observe/event_log.hpp"
#include "comm/observe/hang_watch.hpp"
#include "comm/state/after_unlock.hpp"
#include "comm/state/defer_filter.hpp"
#include "comm/state/driver_instance.hpp"
#include "comm/state/handle_table.hpp"
#include "comm/state/message_pool.hpp"
#include "comm/state/packet_prefetch.hpp"
#include "comm/state/peer.hpp"
#include "comm/state/request.hpp"
#include "comm/state/request_pool.hpp"
#include "comm/state/session.hpp"
#include "comm/state/sink.hpp"
#include "comm/state/under_lock.hpp"
#include "comm/wire/verdict.hpp"
#include "comm/wire/wire.hpp"
#include "ltask/platform.hpp"
#include "ltask/sleeper.hpp"
#include "ltask/submit_lock.hpp"
#include "ltask/task.hpp"

namespace canele::comm {

struct MulticastState;
namespace rendezvous {
struct State;
}

/// A chunk that is to be written into a packet.
struct ChunkToWrite {
  wire::Head head;
  std::byte* out;  ///< where it begins
  Packet* staged;  ///< the packet, if its driver is handed pieces later; else nullptr
};
/// A chunk that was written into a packet.
struct Written {
  std::byte* end;
  bool references = false;  ///< the payload is not in the chunk: it follows as a piece of the user's memory
};

/// State of canele_finalize: not called yet; waiting for the other ranks; bye sent.
enum class Stage : std::uint8_t { running, finalizing, leaving };

/// Returns whether this host has fewer processing units than polling threads, with `each` such threads per rank.
bool is_oversubscribed(Platform& platform, const Bootstrap& bootstrap, unsigned each = 1);

class Context {
 public:
  // ---- requests: state/completion.cpp ---------------------------------------------------------------------------
  void finish(Request& request, int error) CANELE_UNDER_LOCK {
    if (request.kind == Request::Kind::receive) return finish_receive(request, error);
    if (request.role == Request::InternalRole::buffered) [[unlikely]]
      return buffered_send_done(request);
    note_outcome(request, error);
    --pending_sends;
    trace(Event::send_done, request.rank, request.session, request.status_tag, request.data.length);
    publish(request, event::finalized);
  }
  [[gnu::always_inline]] void finish_receive(Request& request, int error) CANELE_UNDER_LOCK {
    note_outcome(request, error);
    publish(request, event::received | event::finalized);
  }
  /// Ends a begun request: the program has completed it, or its message has left within its post.
  void finish_begun(Request& request) CANELE_UNDER_LOCK {
    transition(request, Request::Stage::idle);
    publish(request, event::finalized);
  }
  /// Publishes events of a request, queues its callback, and wakes its waiter.
  void publish(Request& request, unsigned events) CANELE_UNDER_LOCK {
    std::uint64_t seen = request.word.load(std::memory_order_relaxed);
    if (seen == 0) {           // no callback, no sleeping waiter, no cancel: the common case
      if (lock.has_owner()) {  // none can come either, see RequestWordGuard: no atomic operation needed
        request.word.store(events, std::memory_order_release);
        return;
      }
      if (request.word.compare_exchange_strong(seen, events, std::memory_order_acq_rel)) return;
    }
    publish_to_listeners(request, events);
  }
  /// Gives a request to the task queue. The caller has just set its queued bit.
  void queue_delivery(Request& request);
  /// Runs the callbacks of one request. Called by the task queue, outside the lock.
  void deliver(Request& request);

  // ---- peers ----------------------------------------------------------------------------------------------------
  Peer& peer(int to) CANELE_UNDER_LOCK {
    Peer* known = peers[to];
    return known != nullptr ? *known : first_contact(to);
  }
  /// Lists the peer among those whose backlog is to be flushed before the lock is left.
  void mark_backlogged(Peer& p) CANELE_UNDER_LOCK {
    if (p.backlogged) return;
    p.backlogged = true;
    backlogged_peers.push_back(&p);
  }

  // ---- reports --------------------------------------------------------------------------------------------------
  void log(LogLevel level, const std::string& text);
  /// Records an event if CANELE_TRACE asks for it. (The fast path of small messages is not traced: a traced engine does
  /// not take it.)
  void trace(Event kind, int of, const Session* session = nullptr, std::uint64_t tag = 0,
             std::uint64_t length = 0) CANELE_UNDER_LOCK {
    if (event_log != nullptr) [[unlikely]]
      trace_slowly(kind, of, session, tag, length);
  }

  // ---- answered by floors above: engine/dispatch.cpp ------------------------------------------------------------
  /// Runs `op` under the lock: now, or when the holder of the lock gets to it.
  virtual void submit(Op& op) = 0;
  /// Ends every request that needs the peer with `error`. Requests whose memory a driver still has end when it gives
  /// that memory back. lost: the peer did not leave in good order. by: the driver that has given back all of the memory
  /// already.
  virtual void fail_peer(Peer& peer, int error, bool lost, std::string_view reason,
                         DriverInstance* by = nullptr) CANELE_UNDER_LOCK = 0;
  /// A driver has not connected a rail, or has lost it.
  virtual void rail_failed(Rail& rail) CANELE_UNDER_LOCK = 0;
  /// Drops a packet that a driver gave back after its peer had failed.
  virtual void drop_packet(Rail& rail) CANELE_UNDER_LOCK = 0;
  /// Returns whether a worker polls beside the threads of the program.
  virtual bool worker_active() const = 0;
  /// Returns whether a polling thread of this rank shares its core with other threads of the program. Processor time
  /// then counts more than latency.
  virtual bool shares_core() const = 0;

  // Of link/.
  /// Writes the chunk of one planned item at `out`. `staged`: the packet, if its driver is handed pieces later. Large
  /// eager payloads are then left out of the chunk, and follow as pieces.
  virtual Written write_item(Peer& peer, strategies::Item& item, std::byte* out, Packet* staged) CANELE_UNDER_LOCK = 0;
  /// The bytes of an item no longer need the user's memory.
  virtual void item_sent(strategies::Item& item) CANELE_UNDER_LOCK = 0;
  /// `bytes` bulk bytes have left.
  virtual void bulk_sent(Peer& peer, Request& request, std::size_t bytes) CANELE_UNDER_LOCK = 0;
  /// Hands a chunk on to the floor that handles it. Returns the verdict on the chunk.
  virtual Verdict on_chunk(Peer& peer, const wire::Chunk& chunk) CANELE_UNDER_LOCK = 0;
  /// No driver writes to the memory of peer.rail_group->destinations[index] any more.
  virtual void destination_closed(Peer& peer, std::size_t index) CANELE_UNDER_LOCK = 0;

  // Of protocol/.
  /// Writes the envelope of a large message; see rendezvous/announce.hpp.
  virtual std::byte* write_rts(Peer& peer, Request& request, const ChunkToWrite& chunk,
                               const RtrTable::RemoteRtr* remote_rtr) CANELE_UNDER_LOCK = 0;
  /// Moves the data of a large message that was kept, and has met its receive now.
  virtual void start_transfer(Request& request, Message& message) CANELE_UNDER_LOCK = 0;
  /// A large receive waits in the tables: its sender may be told.
  virtual void receive_posted(Request& request, Peer& peer) CANELE_UNDER_LOCK = 0;
  /// Takes back what the sender was told. Returns false if the sender has taken the receive.
  virtual bool withdraw_rtr(Request& request) CANELE_UNDER_LOCK = 0;
  virtual void forget_rtr(Request& request) CANELE_UNDER_LOCK = 0;

  // Of a multicast: multicast/.
  /// Returns the bytes that the route of a send takes in its envelope; write_route() writes them.
  virtual std::size_t route_size(const Request& send) const CANELE_UNDER_LOCK = 0;
  virtual std::byte* write_route(const Request& send, std::byte* out) const CANELE_UNDER_LOCK = 0;
  /// Returns whether the destination of a send takes its data from another rank than this one.
  virtual bool is_read_elsewhere(const Request& send) const CANELE_UNDER_LOCK = 0;
  /// Returns where the destination of a segment_key send finds the data.
  virtual const drivers::MemoryKey& segment_key_of(const Request& send) const CANELE_UNDER_LOCK = 0;
  /// A forward has sent all that it could.
  virtual void forward_paused(Request& forward) CANELE_UNDER_LOCK = 0;

  // ---- constants after create() ---------------------------------------------------------------------------------
  Platform& platform;
  int rank, size;
  LogLevel verbosity;
  std::uint64_t eager_setting;  ///< 0: the driver decides.
  bool receiver_initiated;      ///< large receives send an RTR to their senders.
  bool oversubscribed;          ///< more ranks on this host than processing units: spinning does not pay.
  std::uint64_t incarnation;

  // ---- shared, each with its own discipline ---------------------------------------------------------------------
  ltask::SubmitLock lock;
  ltask::TaskQueue tasks;  ///< for the threads that make progress.
  ltask::Sleeper sleeper;
  HangWatch watch;
  EngineCounters counters;
  RequestPool request_pool;
  std::vector<std::unique_ptr<DriverInstance>> instances;  ///< in order of preference; constant after create().
  matching::CacheWarmer cache_warmer;                      ///< warms the matcher's memory.

  /// Whether addresses may be device memory; see comm/device. Set once, under the lock, before a session can meet such
  /// an address.
  std::atomic<bool> has_devices{false};

  /// Number of memory regions and notification slots. The on-demand thread reads it without the lock.
  std::atomic<std::uint32_t> accessible{0};

  // ---- under the lock -------------------------------------------------------------------------------------------
  std::unique_ptr<Peer*[]> peers CANELE_LOCKED;
  std::vector<std::unique_ptr<Peer>> active_peers CANELE_LOCKED;
  SessionTable sessions CANELE_LOCKED;
  Matcher matcher CANELE_LOCKED;
  PacketPrefetch packet_prefetch CANELE_LOCKED;  ///< prefetches what drivers present.
  HandleTable<Request> sends CANELE_LOCKED;      ///< sends that a peer may name: rendezvous, synchronous.
  HandleTable<Request> transfers CANELE_LOCKED;  ///< receives whose bulk data is on its way.
  MessagePool messages CANELE_LOCKED;
  NodeFifo matched_unbound CANELE_LOCKED;  ///< messages that unbound receives have matched
  CreditPool credit CANELE_LOCKED;         ///< for unexpected messages
  ControlPool controls CANELE_LOCKED;
  std::vector<std::unique_ptr<Packet>> free_packets CANELE_LOCKED;
  std::vector<std::byte> bulk_staging CANELE_LOCKED;  ///< see link/transmit.cpp
  std::vector<Peer*> backlogged_peers CANELE_LOCKED;
  PostUnlockActions after_unlock CANELE_LOCKED;
  std::vector<Rail*> delayed_rails CANELE_LOCKED;  ///< rails delayed until the next progress call.
  bool flush_delayed CANELE_LOCKED = false;        ///< that progress call is running.
  std::uint64_t pending_sends CANELE_LOCKED = 0;   ///< not finalized.
  Stage stage CANELE_LOCKED = Stage::running;
  DeferFilter defer_filter CANELE_LOCKED;
  comm::one_sided::State one_sided CANELE_LOCKED;
  rendezvous::State& large;  ///< large messages on their way; see rendezvous/state.hpp
  MulticastState& multicasts;
  std::unique_ptr<EventLog> event_log CANELE_CONTENT_LOCKED;  ///< nullptr: tracing is off.
  std::uint64_t flip_countdown CANELE_LOCKED;                 ///< fault injection; 0: off.
  bool inspect_deliveries CANELE_LOCKED;                      ///< tracing or fault injection is on.
  std::function<void(Session&)> session_created
      CANELE_LOCKED;  ///< called when a peer is the first to mention a session.

 protected:
  Context(Platform& platform, const Settings& settings, const Bootstrap& bootstrap, rendezvous::State& large,
          MulticastState& multicasts);
  ~Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

 private:
  virtual Peer& first_contact(int to) CANELE_UNDER_LOCK = 0;
  virtual void buffered_send_done(Request& request) CANELE_UNDER_LOCK = 0;
  [[gnu::always_inline]] void note_outcome(Request& request, int error) {
    // The whole table would cost more than 1 % of a short receive, so only `idle` is told apart here.
    assert(request.stage != Request::Stage::idle && "a request ends once");
    request.status_error = error;
    request.stage = Request::Stage::idle;
    --request.session->pending;
    if (error != CANELE_OK) [[unlikely]]
      count_failure(error);
  }
  void publish_to_listeners(Request& request, unsigned events) CANELE_UNDER_LOCK;
  void count_failure(int error);
  [[gnu::cold]] void trace_slowly(Event kind, int of, const Session* session, std::uint64_t tag,
                                  std::uint64_t length) CANELE_UNDER_LOCK;
};

inline void Request::begin(const Context& of) {
  role = InternalRole::none;
  tick = of.watch.tick();
}

/// Depth of callbacks on this thread; blocking calls are refused above 0. The TLS model is fast because every
/// canele_wait reads it.
extern constinit thread_local int callbacks_on_this_thread __attribute__((tls_model("initial-exec")));
inline int callback_depth() { return callbacks_on_this_thread; }

}  // namespace canele::comm
