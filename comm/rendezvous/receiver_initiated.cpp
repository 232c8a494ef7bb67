// SPDX-License-Identifier: BSD-3-Clause
//
// Receiver-initiated transfers: RTRs of posted receives, and shared copies of messages that have met their receives.
//
// A receive with an RTR is in two tables: that of posted receives, and that of transfers.
#include "comm/rendezvous/receiver_initiated.hpp"

#include <algorithm>
#include <cstring>

#include "comm/link/queue.hpp"
#include "comm/protocol/send.hpp"
#include "comm/rendezvous/shared_copy.hpp"
#include "comm/state/payload.hpp"
#include "comm/state/staged.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::rtr {

namespace {

RtrTable& rtr_table_of(Peer& peer) {
  if (peer.rtr_table == nullptr) peer.rtr_table = std::make_unique<RtrTable>();
  return *peer.rtr_table;
}

/// Makes the memory of a receive writable by the peer. Returns false if that cannot be done, or takes too many words.
bool register_memory(Peer& peer, const Request& request, drivers::MemoryKey& rkey) {
  iovec pieces[2];
  std::size_t covered = 0;
  const int count = data::pieces(request.data, 0, request.data.length, pieces, 2, &covered);
  if (covered != request.data.length) return false;
  drivers::Driver& driver = *peer.rail->instance->driver;
  return driver.register_memory(peer.rank, drivers::RmaOp::put, pieces, count, &rkey) == drivers::Status::ok &&
         rkey.size <= RtrTable::rkey_room && rkey.handle == 0;
}

int line_of(const RtrTable& table, const Request* request) {
  for (int i = 0; i < RtrTable::most; ++i) {
    if (table.local[i].request == request) return i;
  }
  return -1;
}

/// Returns a line that no receive from this peer has, or -1.
int free_line(const Peer& peer) {
  const int line = peer.rtr_table != nullptr ? line_of(*peer.rtr_table, nullptr) : 0;
  return line < peer.rail->lines.count ? line : -1;
}

/// Counts the receives from this peer that have a line and their message. Their lines will be free again.
int moving(const Peer& peer) {
  const auto& local = peer.rtr_table->local;
  return static_cast<int>(std::count_if(local.begin(), local.end(), [](const RtrTable::LocalRtr& one) {
    return one.request != nullptr && one.request->stage == Request::Stage::moving;
  }));
}

/// Returns the send with this handle, if it is for that session and tag, waits for an answer to its announcement, and
/// has data in host memory.
Request* unanswered(Context& context, const Peer& peer, Handle handle, std::uint32_t session,
                    std::uint64_t tag) CANELE_UNDER_LOCK {
  Request* const request = handle != Handle::none ? context.sends.find(handle) : nullptr;
  const bool is_it = request != nullptr && request->rank == peer.rank && request->session->number == session &&
                     request->status_tag == tag && request->role == Request::InternalRole::none &&
                     request->stage == Request::Stage::moving && request->expected == 0 && !request->copying &&
                     !is_incomplete(*request);
  return is_it ? request : nullptr;
}

/// What the sender of a receive is told.
struct Opened {
  wire::Rtr rtr;
  drivers::MemoryKey rkey;
};

/// Gives a receive a line, and a place among the transfers. Returns false if none is free, or its memory cannot be
/// registered.
bool open(Context& context, Request& request, Peer& peer, Opened& opened) CANELE_UNDER_LOCK {
  const int line = free_line(peer);
  if (line < 0 || !register_memory(peer, request, opened.rkey)) return false;
  RtrTable::LocalRtr& local = rtr_table_of(peer).local[line];
  local.request = &request;
  ChunkClaims(peer.rail->lines.ours[line], ++local.generation).open();
  request.receive.peer = &peer;
  request.moved = request.expected = 0;  // from now on the peer may name the request
  request.handle = context.transfers.add(request);
  opened.rtr = {};
  opened.rtr.key = request.handle;
  opened.rtr.length = request.data.length;
  opened.rtr.generation = local.generation;
  opened.rtr.line = static_cast<std::uint16_t>(line);
  opened.rtr.rkey = opened.rkey.size;
  return true;
}

/// Tells the sender of a receive. `fields`: all of the chunk but its payload.
void tell(Context& context, Peer& peer, link::ControlFields fields, const Opened& opened) CANELE_UNDER_LOCK {
  std::byte payload[sizeof opened.rtr + RtrTable::rkey_room];
  std::memcpy(payload, &opened.rtr, sizeof opened.rtr);
  std::memcpy(payload + sizeof opened.rtr, opened.rkey.bytes, opened.rkey.size);
  fields.payload = {payload, sizeof opened.rtr + opened.rkey.size};
  link::send_control(context, peer, fields);
}

/// Shares a receive that has met its message. Returns true if both ends copy from now on.
bool share_now(Context& context, Request& request, Peer& peer,
               const rendezvous::RemoteSource& source) CANELE_UNDER_LOCK {
  Opened opened;
  if (!open(context, request, peer, opened)) return false;
  CANELE_COVER(announced_message_shared);
  ChunkClaims claims = claims_of(peer, request);
  claims.acquire();  // in the name of the sender, which may come too late to copy any chunk
  request.transfer_id = source.handle;
  tell(context, peer, {.type = wire::Type::shared_copy, .tag = word_of(source.handle)}, opened);
  shared_copy::receive(context, request, peer, claims, source.rkey);
  return true;
}

/// Returns the source of a copy that waits.
rendezvous::RemoteSource source_of(const rendezvous::RmaCopy& copy) {
  return {
      copy.handle, {copy.rkey.bytes, copy.rkey.size}, copy.peer->rail->instance->driver_tag(), copy.costs != nullptr};
}

/// Lets the receives that wait for a line go on, in their order, when one is free, or when none will ever be. Those of
/// a peer that is disconnected end like any copy.
void start_waiting(Context& context, Peer& peer) CANELE_UNDER_LOCK {
  RtrTable& table = *peer.rtr_table;
  while (table.first_waiting != nullptr && (free_line(peer) >= 0 || !shares(context, peer))) {
    rendezvous::RmaCopy& copy = *table.first_waiting;
    table.first_waiting = copy.next_free;
    const bool shared = shares(context, peer) && share_now(context, *copy.request, peer, source_of(copy));
    shared ? rendezvous::free_copy(context, copy) : rendezvous::start_get(copy);
  }
}

/// Reads an rtr; the rkey is left of `payload`. Returns false if the lengths are wrong.
bool take_rtr(std::span<const std::byte>& payload, wire::Rtr& rtr) {
  return wire::take(payload, rtr) && payload.size() == rtr.rkey && rtr.rkey <= RtrTable::rkey_room && rtr.rkey != 0 &&
         rtr.length != 0;
}

RtrTable::RemoteRtr remote_rtr_of(const wire::Rtr& rtr, std::uint64_t tag, std::uint32_t session,
                                  std::span<const std::byte> rkey) {
  RtrTable::RemoteRtr remote_rtr{tag, rtr.key, rtr.length, session, rtr.generation, rtr.line, rtr.rkey, {}};
  std::copy(rkey.begin(), rkey.end(), remote_rtr.rkey.begin());
  return remote_rtr;
}

/// Starts the shared copy of a receive that is in no table of the matcher any more, when its message is
/// announced.
void start_shared(Context& context, Request& request, Peer& peer,
                  const rendezvous::ParsedRts& parsed) CANELE_UNDER_LOCK {
  context.counters.add(Counter::posted_matches);
  request.status_tag = parsed.head.tag;
  request.rank = peer.rank;
  request.status_length = parsed.rts.length;
  transition(request, Request::Stage::moving);
  request.transfer_id = parsed.rts.handle;
  request.expected = 0;
  shared_copy::receive(context, request, peer, claims_of(peer, request), parsed.rkey);
}

/// Acquires an RTR that crossed a message which is for it and no other. This end then copies, too. If the RTR was
/// withdrawn, the receiver has the announcement already.
void acquire_late(Context& context, Peer& peer, Request& request,
                  const RtrTable::RemoteRtr& remote_rtr) CANELE_UNDER_LOCK {
  ChunkClaims claims(peer.rail->lines.theirs[remote_rtr.line], remote_rtr.generation);
  if (!claims.acquire()) return;
  CANELE_COVER_RARE(rtr_acquired_by_message_under_way);
  shared_copy::send(context, request, peer, claims, remote_rtr);
}

}  // namespace

bool shares(const Context& context, const Peer& peer) {
  if (!context.receiver_initiated || peer.state != Peer::State::up || peer.rail_group != nullptr ||
      peer.rail->lines.count == 0) {
    return false;
  }
  const drivers::Capabilities& can = peer.rail->instance->driver->capabilities();
  return can.get && can.put && can.rma_any_thread;
}

bool copies_alone(const Context& context, std::uint64_t length) {
  constexpr std::uint64_t long_copy = 1 << 20;
  return context.shares_core() && length < long_copy;
}

bool has_line(const Peer& peer) {
  return free_line(peer) >= 0 || moving(peer) >= peer.rail->lines.count / 2;  // else RTRs have them, perhaps for long
}

void send(Context& context, Request& request, Peer& peer) {
  if (request.data.length < RtrTable::shortest || !shares(context, peer) ||
      !rendezvous::kernel_copies(context, peer, request) || copies_alone(context, request.data.length))
    return;
  if (!context.matcher.is_next(request.session->match, request.receive.node)) return;
  Opened opened;
  if (!open(context, request, peer, opened)) return;
  CANELE_COVER(rtr_sent);
  opened.rtr.seen = peer.next_in;
  send_path::announce(context, peer, *request.session);
  tell(context, peer,
       {.type = wire::Type::rtr,
        .tag = request.receive.node.tag,
        .session = static_cast<std::uint16_t>(request.session->wire)},
       opened);
}

bool share(Context& context, Request& request, Peer& peer, const rendezvous::RemoteSource& source) {
  if (free_line(peer) >= 0) return share_now(context, request, peer, source);
  const std::uint64_t want = std::min<std::uint64_t>(request.status_length, request.data.length);
  drivers::MemoryKey ours;
  if (!register_memory(peer, request, ours)) return false;  // the receive would wait in vain
  CANELE_COVER_RARE(share_waits_for_a_line);
  rendezvous::RmaCopy& copy = rendezvous::new_copy(context, request, peer, source.rkey);
  copy.costs = source.may_stream ? &peer.rail->instance->copy_costs : nullptr;
  copy.handle = source.handle;
  copy.want = want;
  copy.next_free = nullptr;
  RtrTable& table = *peer.rtr_table;
  (table.first_waiting == nullptr ? table.first_waiting : table.last_waiting->next_free) = &copy;
  table.last_waiting = &copy;
  return true;
}

ChunkClaims claims_of(const Peer& peer, const Request& request) {
  const int line = peer.rtr_table != nullptr ? line_of(*peer.rtr_table, &request) : -1;
  if (line < 0) return {};
  return {peer.rail->lines.ours[line], peer.rtr_table->local[line].generation};
}

bool withdraw(Context& context, Request& request) {
  if (!claims_of(*request.receive.peer, request).close()) {
    CANELE_COVER_RARE(rtr_acquired_before_withdrawn);
    return false;
  }
  CANELE_COVER(rtr_withdrawn);
  forget(context, request);
  return true;
}

void forget(Context& context, Request& request) {
  claims_of(*request.receive.peer, request).revoke();  // a sender that was rejected may live and go on
  RtrTable& table = *request.receive.peer->rtr_table;
  table.local[line_of(table, &request)].request = nullptr;
  context.transfers.remove(request.handle);
  request.handle = Handle::none;
  if (table.first_waiting != nullptr) start_waiting(context, *request.receive.peer);
}

void forget_session(Context& context, const Session& session) {
  for (const auto& peer : context.active_peers) {
    if (peer->rtr_table == nullptr || peer->rtr_table->remote.empty()) continue;
    const auto of_it = [&](const RtrTable::RemoteRtr& one) { return one.session == session.number; };
    if (std::erase_if(peer->rtr_table->remote, of_it) != 0) send_path::update_fast_limits(context, *peer->rail);
  }
}

Verdict on_rtr(Context& context, Peer& peer, const wire::Head& head, std::span<const std::byte> payload) {
  wire::Rtr rtr;
  if (!take_rtr(payload, rtr)) return Verdict::violation("a ready to receive has wrong lengths");
  const Session* const named = peer.names.look_up(head.session);
  if (named == nullptr) return Verdict::violation("a ready to receive names a session that was not announced");
  // The peer may share and we may not. And nothing is sent in a closed session.
  if (!shares(context, peer) || !named->open) return Verdict::ok();
  if (rtr.line >= peer.rail->lines.count)
    return Verdict::violation("a ready to receive names a line that is not there");
  const std::uint32_t session = named->number;
  std::vector<RtrTable::RemoteRtr>& remote = rtr_table_of(peer).remote;
  // Only the receive that is next has an RTR, so an older RTR has been withdrawn.
  if (const auto older = rtr_table_of(peer).find(session, head.tag); older != remote.end()) {
    CANELE_COVER(older_rtr_replaced);
    remote.erase(older);
  }
  const RtrTable::RemoteRtr remote_rtr = remote_rtr_of(rtr, head.tag, session, payload);
  Handle handle = Handle::none;
  switch (peer.recent.first(rtr.seen, peer.next_out, named->wire, head.tag, &handle)) {
    case RecentEnvelopes::Answer::none:
      if (remote.size() == RtrTable::most) break;
      CANELE_COVER(rtr_kept);
      remote.push_back(remote_rtr);
      break;
    case RecentEnvelopes::Answer::one:
      CANELE_COVER(rtr_crossed_its_message);
      if (Request* const sent = unanswered(context, peer, handle, session, head.tag); sent != nullptr)
        acquire_late(context, peer, *sent, remote_rtr);
      break;
    case RecentEnvelopes::Answer::unknown:
      break;
  }
  send_path::update_fast_limits(context, *peer.rail);
  return Verdict::ok();
}

Verdict on_shared_copy(Context& context, Peer& peer, Handle handle, std::span<const std::byte> payload) {
  wire::Rtr rtr;
  if (!take_rtr(payload, rtr)) return Verdict::violation("a shared copy has wrong lengths");
  Request* const sent = context.sends.find(handle);
  const bool streams = sent != nullptr && !sent->is_blocked() && sent->expected != 0;
  if (sent == nullptr || sent->rank != peer.rank || !sent->rendezvous || !sent->announced() || streams) {
    return Verdict::violation("a shared copy names no send that waits for an answer");
  }
  if (!shares(context, peer)) return Verdict::ok();  // then the receiver copies all
  if (rtr.line >= peer.rail->lines.count) return Verdict::violation("a shared copy names a line that is not there");
  const ChunkClaims claims(peer.rail->lines.theirs[rtr.line], rtr.generation);
  if (sent->copying || sent->is_blocked() || is_incomplete(*sent) || sent->role != Request::InternalRole::none ||
      !claims.acquired()) {
    CANELE_COVER_RARE(share_not_joined);
    return Verdict::ok();
  }
  CANELE_COVER(share_joined);
  shared_copy::send(context, *sent, peer, claims, remote_rtr_of(rtr, 0, 0, payload));
  return Verdict::ok();
}

Verdict on_claimed_rts(Context& context, Peer& peer, const Session& session, const rendezvous::ParsedRts& parsed) {
  Request* request = context.transfers.find(parsed.rts.receive);
  if (request == nullptr || request->receive.peer != &peer || request->session != &session ||
      !request->receive.node.queued || request->receive.node.tag != parsed.head.tag) {
    return Verdict::violation("a request to send names a receive without an RTR");
  }
  const ChunkClaims claims = claims_of(peer, *request);
  if (!claims || !claims.acquired())
    return Verdict::violation("a request to send names a receive that it has not taken");
  context.matcher.cancel(request->session->match, request->receive.node);
  start_shared(context, *request, peer, parsed);
  return Verdict::ok();
}

bool withdraw_or_share(Context& context, Peer& peer, Request& request, const rendezvous::ParsedRts& parsed) {
  if (withdraw(context, request)) return false;
  CANELE_COVER_RARE(announcement_of_acquired_rtr);
  start_shared(context, request, peer, parsed);
  return true;
}

}  // namespace canele::comm::rtr
