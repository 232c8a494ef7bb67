// SPDX-License-Identifier: BSD-3-Clause
//
// What an engine keeps of multicasts. Of its own it keeps a Multicast, with a DestinationSend for each destination. Of
// those of other ranks it keeps an IncomingMulticast, with a ChildSend for each rank to which it forwards the data.
//
// Used under the engine's lock, by any thread: by multicast.cpp at the root, and by relay.cpp at every destination.
//
// Envelopes do not travel down the tree. Each destination gets its own from the root, in order with all else that the
// root sends. The envelope names the parent, the rank to ask for the data. Only data takes the tree, at the request
// of the children.
//
//   root                                 parent (a destination itself)                destination
//   Multicast ─┬─ DestinationSend ──rts─▶ IncomingMulticast (children: …)
//              └─ DestinationSend ──rts────────────────────────────────────────────▶ IncomingMulticast (parent: …)
//                                       IncomingMulticast ◀────cts──────────────────  its receive has a buffer
//   bulk_send ──────data───────────────▶ receive or RelayBuffer ──ChildSend──data───▶ receive
//              ◀───────────────fin────  IncomingMulticast ◀────done─────────────────  all of it is here
//              ◀───────────────fin──────────────────────────────────────────────────
//   If the parent is disconnected, or redirects, the destination asks the root, from where it has come to.
//
// Rejected: the envelope in the tree, too. It would have to wait at each destination for what the root sent there
// before. What the root sends there next would have to wait for it. Each message of a re-routed subtree could come
// twice. And a blocked envelope would stop those below it.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "comm/multicast/shape.hpp"
#include "comm/state/request.hpp"
#include "comm/state/session.hpp"
#include "comm/state/sink.hpp"
#include "comm/state/under_lock.hpp"
#include "comm/wire/wire.hpp"
#include "drivers/driver.hpp"

namespace canele::comm {

struct IncomingMulticast;
struct DriverInstance;
struct Multicast;

/// A request of the engine's own. When it is finalized, `on_complete` runs under the lock.
struct InternalRequest : Request {
  struct OnComplete : CallOp {
    InternalRequest* owner = nullptr;
  };
  OnComplete on_complete;
};
/// Makes an internal request a send to rank `to`, to be finalized by Context::finish().
void prepare_internal(InternalRequest& request, Context& context, Session& session, int to,
                      void (*on_complete)(Context&, CallOp&));

/// The root's send to one destination.
struct DestinationSend : InternalRequest {
  Multicast* multicast = nullptr;
  int index = 0;    ///< as the user numbered it
  int parent = -1;  ///< the rank that sends it the data; -1: the root
  std::vector<std::uint32_t> children;
  bool has_credit = false;  ///< its envelope may be sent
};

/// A multicast of this rank.
struct Multicast : CallOp {
  Request* request = nullptr;  ///< the user's
  std::vector<int> ranks;
  std::vector<std::int32_t> priorities;  ///< of each
  int* outcomes = nullptr;               ///< the user's, or nullptr
  multicast::Shape shape = multicast::Shape::automatic;
  std::uint32_t id = 0;
  std::size_t left = 0;  ///< sends that have not ended
  int error = CANELE_OK;
  std::unique_ptr<DestinationSend[]> sends;
  DriverInstance* segment_driver = nullptr;  ///< whose peers find the data at `segment_key`
  drivers::MemoryKey segment_key;
};

/// Data on its way to a child.
struct ChildSend : InternalRequest {
  IncomingMulticast* multicast = nullptr;
};

/// A rank to which we forward the data when it asks.
struct Child {
  int rank = 0;
  bool listed = false;  ///< by the root
  bool asked = false;
  bool done = false;
  wire::MulticastCts cts{};
  std::unique_ptr<ChildSend> send;
};

/// Memory of the engine for data that is forwarded before its receive has a buffer.
struct RelayBuffer {
  std::unique_ptr<std::byte[]> memory;  ///< as long as the message
  bool complete = false;
  Request fetch{};
};

/// Copies a relay buffer into the user's buffer, outside the lock.
struct RelayCopy : ltask::Task, CallOp {
  Context* context = nullptr;
  IncomingMulticast* multicast = nullptr;
  std::uint64_t copied = 0;
};

/// A multicast of another rank.
struct IncomingMulticast final : Sink {
  bool attach_receive(Context& context, Request& request) CANELE_UNDER_LOCK override;
  Peer& next_source(Context& context) const CANELE_UNDER_LOCK override;
  bool request_data(Context& context, Request& request, Peer& from, std::uint64_t offset) CANELE_UNDER_LOCK override;
  void request_again(Context& context, Request& request) CANELE_UNDER_LOCK override;
  bool outlives(const Peer& peer) const override;
  void on_bulk_begun() override { bulk_begun = true; }
  void on_progress(Context& context, Request& request) CANELE_UNDER_LOCK override;
  void on_done(Context& context, const Request& request, Peer& from) CANELE_UNDER_LOCK override;
  void on_receive_end(Context& context, Request& request, int outcome) CANELE_UNDER_LOCK override;

  int root = 0;
  std::uint32_t id = 0;
  bool announced = false;   ///< its envelope has come.
  bool redirected = false;  ///< the root is to be asked, not the parent.
  bool closed = false;      ///< nothing is forwarded any more: a rank that asks is redirected.
  bool failed = false;      ///< it will never have all of the data.
  bool bulk_begun = false;  ///< data of the parent has begun to arrive.
  bool dropped = false;     ///< its message was rejected: what comes is only for the children.
  bool waiting = false;     ///< the receive has its data, and waits until no child send reads it any more.
  int parent = -1;
  int outcome = CANELE_OK;            ///< of the receive
  Session* session = nullptr;         ///< of the envelope.
  Handle root_handle = Handle::none;  ///< the root's handle of its send to us.
  std::uint64_t length = 0;           ///< of the message
  std::uint64_t available = 0;        ///< bytes that can be forwarded
  Request* receive = nullptr;         ///< the user's, once it has a buffer and until it is finalized.
  Request* fetching = nullptr;        ///< the receive, or the relay buffer's, while its data comes as a stream
  std::unique_ptr<RelayBuffer> relay_buffer;
  std::vector<Child> children;
  std::unique_ptr<RelayCopy> copy;  ///< copies the relay buffer to the receive
};

/// All multicasts of one engine.
struct MulticastState {
  static constexpr std::size_t most_unannounced = 65'536;
  static std::uint64_t key_of(int root, std::uint32_t id) {
    return std::uint64_t{static_cast<std::uint32_t>(root)} << 32 | id;
  }

  std::unordered_map<std::uint64_t, std::unique_ptr<IncomingMulticast>> incoming CANELE_LOCKED;
  std::size_t unannounced CANELE_LOCKED = 0;  ///< of those: the envelope has not come yet
  std::unordered_map<int, std::uint32_t> lowest
      CANELE_LOCKED;  ///< by root: all multicasts below that number have ended everywhere

  std::unordered_map<std::uint32_t, std::unique_ptr<Multicast>> outgoing CANELE_LOCKED;
  std::uint32_t next_id CANELE_LOCKED = 1, lowest_id CANELE_LOCKED = 1;
  std::deque<bool> ended CANELE_LOCKED;  ///< whether the outgoing ones have ended, from lowest_id on
  std::uint64_t relay_bytes CANELE_LOCKED = 0, relay_limit = 0;
  multicast::Shape shape_override = multicast::Shape::automatic;
  Session session;  ///< of child sends, which belong to no session of the program
};

/// The multicast that a receive has matched.
inline IncomingMulticast& incoming_of(const Request& request) {
  return static_cast<IncomingMulticast&>(*request.receive.sink);
}
inline DestinationSend& destination_send_of(Request& request) { return static_cast<DestinationSend&>(request); }
inline const DestinationSend& destination_send_of(const Request& request) {
  return static_cast<const DestinationSend&>(request);
}

}  // namespace canele::comm
