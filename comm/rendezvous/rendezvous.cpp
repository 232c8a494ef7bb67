// SPDX-License-Identifier: BSD-3-Clause
//
// Rendezvous: the start of a transfer, and its data as a stream. get.cpp has the other way of the data, and
// end_transfer.cpp has the end.
#include "comm/rendezvous/rendezvous.hpp"

#include <algorithm>
#include <utility>

#include "comm/link/pacing.hpp"
#include "comm/link/queue.hpp"
#include "comm/protocol/credit_sender.hpp"
#include "comm/protocol/receive.hpp"
#include "comm/rendezvous/async_get.hpp"
#include "comm/rendezvous/choose.hpp"
#include "comm/rendezvous/receiver_initiated.hpp"
#include "comm/state/payload.hpp"
#include "comm/state/staged.hpp"
#include "comm/wire/wire.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::rendezvous {

static ReceiveFacts facts_of(const Context& context, const Request& request, const Peer& peer,
                             const RemoteSource& source) CANELE_UNDER_LOCK;
[[gnu::cold]] static void fail_to_start(Context& context, Request& request, const Peer& peer) CANELE_UNDER_LOCK;
static std::vector<OpenDestination>::iterator find_open(RailGroup& group, Handle transfer_id,
                                                        const DriverInstance& instance);
static bool is_missing(const RailGroup& group, const Request& request, const DriverInstance& instance,
                       const BulkRange& range);
static void note_open(RailGroup& group, const OpenDestination& opened);
static void bulk_arrived(Context& context, Request& request, Peer& peer, const BulkRange& range) CANELE_UNDER_LOCK;
static bool note_arrived(RailGroup& group, Request& request, const BulkRange& range);
static void on_bulk_progress(Context& context, Request& request, Peer& peer) CANELE_UNDER_LOCK;
static bool is_granted(const Request& request);
static void grant_staged(Context& context, Peer& peer, Request& request) CANELE_UNDER_LOCK;
static std::size_t rma_min_for(const Context& context, const Peer& peer);
static bool is_awaited_operand(const Context& context, const Request& request);

void start_transfer(Context& context, Request& request, Peer& peer, const RemoteSource& source) {
  transition(request, Request::Stage::moving);
  request.moved = request.expected = 0;
  Sink* const sink = request.receive.sink;
  if (sink != nullptr && sink->attach_receive(context, request)) return;
  const ReceiveFacts facts = facts_of(context, request, peer, source);
  switch (choose_for_receive(facts)) {
    case Scheme::nothing:
      if (facts.ended) return fail_to_start(context, request, peer);
      CANELE_COVER(rendezvous_of_nothing);
      fin(context, peer, source.handle, CANELE_OK);
      receive_path::complete_receive(context, request, peer, 0);
      return;
    case Scheme::shared_copy:
      if (rtr::share(context, request, peer, source)) return;
      [[fallthrough]];  // the receive has too many pieces for its sender
    case Scheme::get:
    case Scheme::async_get:
      CANELE_COVER(rendezvous_gets);
      begin_get(context, request, peer, source, facts.length);
      return;
    case Scheme::device_get:
      begin_device_get(context, request, peer, source, facts.length);
      return;
    default:
      if (facts.stream_is_quicker) CANELE_COVER(streamed_by_choice);
      stream(context, request, peer, source.handle, facts.length);
  }
}

/// Gathers what choose_for_receive() asks. What only long messages are asked for is looked up for these alone.
static ReceiveFacts facts_of(const Context& context, const Request& request, const Peer& peer,
                             const RemoteSource& source) {
  const DriverInstance* const instance = peer.rail->instance;
  ReceiveFacts facts;
  facts.length = std::min<std::uint64_t>(request.status_length, request.data.length);
  facts.ended = peer.disconnected() || context.stage == Stage::leaving;
  if (source.rkey_driver == wire::device_memory) {
    facts.has_device_key = request.receive.sink == nullptr && is_staged(request) && staged_of(request).get != nullptr;
    return facts;
  }
  if (source.rkey.empty() || instance == nullptr || instance->driver_tag() != source.rkey_driver) return facts;
  const drivers::Capabilities& can = instance->driver->capabilities();
  facts.has_key = can.get;
  facts.any_thread = can.rma_any_thread;
  facts.stream_is_quicker = source.may_stream && !kernel_copies(context, peer, request);
  if (facts.length <= RtrTable::longest_for_one) return facts;
  facts.multicast = request.receive.sink != nullptr;
  facts.is_operand = is_awaited_operand(context, request);
  facts.both_can_copy = rtr::shares(context, peer);
  facts.alone_is_better = rtr::copies_alone(context, facts.length);
  facts.has_line = facts.both_can_copy && rtr::has_line(peer);
  return facts;
}

/// Returns whether the receiver waits for an operand of a reduction, and will compute as soon as it is there. Until
/// then the sender waits as well: it had better do its half of the work, by writing to a shared buffer.
static bool is_awaited_operand(const Context& context, const Request& request) {
  return request.is_operand && !context.worker_active();
}

/// Ends a receive whose peer has failed, or whose engine is leaving.
[[gnu::cold]] static void fail_to_start(Context& context, Request& request, const Peer& peer) {
  if (peer.disconnected()) {
    CANELE_COVER(rendezvous_with_disconnected);
    receive_path::fail_receive(context, request, peer.error);
    return;
  }
  CANELE_COVER_RARE(rendezvous_while_leaving);  // the peer releases its memory as soon as it hears of that
  receive_path::fail_receive(context, request, CANELE_ECANCELED);
}

void stream(Context& context, Request& request, Peer& peer, Handle handle, std::uint64_t want) {
  CANELE_COVER(rendezvous_streamed);
  request.moved = 0;
  request.expected = want;
  const Sink* const sink = request.receive.sink;
  grant(context, request, sink != nullptr ? sink->next_source(context) : peer, handle, 0);
}

void grant(Context& context, Request& request, Peer& peer, Handle send, std::uint64_t offset) {
  context.trace(Event::cts_sent, peer.rank, request.session, request.status_tag, request.expected - offset);
  request.receive.peer = &peer;
  request.transfer_id = send;
  request.handle = context.transfers.add(request);
  if (Sink* const sink = request.receive.sink; sink != nullptr && sink->request_data(context, request, peer, offset))
    return;
  const wire::Cts cts{request.handle, offset, request.expected - offset};
  link::send_control(context, peer, {.type = wire::Type::cts, .tag = word_of(send), .payload = link::bytes_of(cts)});
}

Verdict on_cts(Context& context, Peer& peer, Handle handle, std::span<const std::byte> payload) {
  wire::Cts cts;
  Request* request = context.sends.find(handle);
  if (!wire::take(payload, cts)) return Verdict::violation("a clear to send is too short");
  const bool has_another = request != nullptr && !request->is_blocked() && is_granted(*request);
  if (request == nullptr || request->rank != peer.rank || !request->rendezvous || has_another ||
      !request->announced() || request->role == Request::InternalRole::child_send) {
    return Verdict::violation("a clear to send names no send that waits for one");
  }
  const std::uint64_t length = request->data.length;
  if (cts.length == 0 || cts.length > length || cts.offset > length - cts.length) {
    return Verdict::violation("a clear to send asks for bytes that the message does not have");
  }
  CANELE_COVER(cts_arrived);
  context.trace(Event::cts_received, peer.rank, request->session, request->status_tag, cts.length);
  if (request->is_blocked()) credit_sender::taken(context, peer, *request);
  async_get::deregister(peer, *request);  // the receiver does not fetch, or no longer
  request->transfer_id = cts.key;
  request->moved = cts.offset;
  request->expected = cts.offset + cts.length;
  if (is_staged(*request)) {
    grant_staged(context, peer, *request);
  } else {
    send_stream(context, peer, *request);
  }
  return Verdict::ok();
}

/// Returns whether a clear to send for a request is in force.
static bool is_granted(const Request& request) {
  return request.expected != 0 || (is_staged(request) && staged_of(request).granted_end != 0);
}

/// Sends what is available of the bytes that were asked for.
static void grant_staged(Context& context, Peer& peer, Request& request) {
  Staged& staged = staged_of(request);
  staged.granted_end = std::exchange(request.expected, request.moved);
  if (is_on_device(request)) staged.stage(staged);
  send_further(context, peer, request);
}

void send_further(Context& context, Peer& peer, Request& request) {
  const Staged& staged = staged_of(request);
  if (staged.granted_end == 0 || request.stage != Request::Stage::moving) return;
  const std::uint64_t upto = std::min(staged.granted_end, staged.available);
  if (upto > request.expected) {
    request.expected = upto;
    if (request.item.queued) return link::note_bytes_left(peer, request);
    send_stream(context, peer, request);
  } else {
    fail_if_paused(peer, request);
  }
}

void send_stream(Context& context, Peer& peer, Request& request) {
  const std::int32_t priority = request.item.priority;
  request.item = strategies::Item{};
  request.item.kind = strategies::Kind::bulk;
  request.item.priority = priority;
  link::note_bytes_left(peer, request);
  link::enqueue(context, peer, request.item);
}

void on_regrant(Context& context, Peer& peer, Handle transfer_id) {
  Request* request = context.transfers.find(transfer_id);
  if (request == nullptr || request->receive.peer != &peer || peer.rail_group == nullptr) return;  // all of it has come
  CANELE_COVER(regranted);
  regrant(context, *request);
}

void regrant(Context& context, Request& request) {
  Peer& peer = *request.receive.peer;
  if (peer.rail_group != nullptr) {
    if (peer.rail_group->mark_open(request.handle, &OpenDestination::asked_again)) {
      CANELE_COVER_RARE(regrant_while_destination_open);
      return;
    }
    peer.rail_group->ranges.erase(word_of(request.handle));  // they will come again
  }
  context.transfers.remove(request.handle);
  if (request.receive.sink != nullptr) return request.receive.sink->request_again(context, request);
  grant(context, request, peer, request.transfer_id, request.moved);
}

int bulk_destination(Context& context, Peer& peer, const DriverInstance& instance, const BulkRange& range,
                     std::span<iovec> out) {
  const auto [transfer_id, offset, length] = range;
  const int max = static_cast<int>(out.size());
  Request* request = context.transfers.find(transfer_id);
  if (request == nullptr || request->receive.peer != &peer) return 0;
  if (offset >= request->expected || length > request->expected - offset) return 0;
  const Rail* rail = peer.rail_of(instance);
  if (rail == nullptr || !rail->is_connected())
    return 0;  // a connection that is not used, or that belongs to a disconnected peer
  if (request->receive.sink != nullptr) request->receive.sink->on_bulk_begun();
  std::size_t covered = 0;
  if (peer.rail_group == nullptr) return data::pieces(request->data, offset, length, out.data(), max, &covered);
  if (!is_missing(*peer.rail_group, *request, instance, range)) return 0;
  const int count = data::pieces(request->data, offset, length, out.data(), max, &covered);
  if (count > 0) note_open(*peer.rail_group, {&instance, transfer_id, offset, offset + covered});
  return count;
}

/// Returns whether bytes have not arrived, and no other driver brings them. So no driver writes to a receive whose
/// bytes have all arrived, whatever a peer sends.
static bool is_missing(const RailGroup& group, const Request& request, const DriverInstance& instance,
                       const BulkRange& range) {
  const std::uint64_t begin = range.offset, end = range.offset + range.length;
  if (begin < request.moved) return false;
  const auto early = group.ranges.find(word_of(range.transfer_id));
  if (early != group.ranges.end() && early->second.overlap(begin, end)) return false;
  return std::none_of(group.destinations.begin(), group.destinations.end(), [&](const OpenDestination& one) {
    return one.transfer_id == range.transfer_id && one.instance != &instance && one.begin < end && begin < one.end;
  });
}

/// Notes what a driver writes from now on, in place of what it wrote of this transfer before.
static void note_open(RailGroup& group, const OpenDestination& opened) {
  const auto known = find_open(group, opened.transfer_id, *opened.instance);
  if (known == group.destinations.end()) {
    group.destinations.push_back(opened);
  } else {
    known->begin = opened.begin;
    known->end = opened.end;
  }
}

/// Finds the destination that a driver has open for a transfer. Each of several rails may have one.
static std::vector<OpenDestination>::iterator find_open(RailGroup& group, Handle transfer_id,
                                                        const DriverInstance& instance) {
  return std::find_if(group.destinations.begin(), group.destinations.end(), [&](const OpenDestination& one) {
    return one.transfer_id == transfer_id && one.instance == &instance;
  });
}

void bulk_written(Context& context, Peer& peer, const DriverInstance& instance, const BulkRange& range) {
  const auto [transfer_id, offset, length] = range;
  Request* request = context.transfers.find(transfer_id);
  const bool wanted = request != nullptr && request->receive.peer == &peer && !peer.disconnected() &&
                      offset < request->expected && length <= request->expected - offset;
  context.watch.moved();
  pacing::arrived(context, peer, instance, length);
  if (wanted) bulk_arrived(context, *request, peer, range);
  if (peer.rail_group == nullptr) return;
  const auto closed = find_open(*peer.rail_group, transfer_id, instance);
  if (closed == peer.rail_group->destinations.end()) return;
  destination_closed(context, peer, static_cast<std::size_t>(closed - peer.rail_group->destinations.begin()));
}

/// Handles that bytes of a stream have arrived.
static void bulk_arrived(Context& context, Request& request, Peer& peer, const BulkRange& range) {
  context.trace(Event::bulk_received, peer.rank, request.session, request.status_tag, range.length);
  const std::uint64_t before = request.moved;
  if (peer.rail_group == nullptr) {
    request.moved = std::min(request.moved + range.length, request.expected);
  } else if (!note_arrived(*peer.rail_group, request, range)) {
    context.fail_peer(peer, CANELE_EPROTOCOL, true, "its bulk data has too many gaps");
    return;
  }
  if (request.moved != before) on_bulk_progress(context, request, peer);
}

/// Notes bytes of a transfer that several rails may bring: `moved` counts those in front of the first gap. Returns
/// false if there are more gaps than rails leave.
static bool note_arrived(RailGroup& group, Request& request, const BulkRange& range) {
  constexpr std::size_t most_gaps = 4096;
  const auto known = group.ranges.find(word_of(range.transfer_id));
  if (known == group.ranges.end() && range.offset == request.moved) {
    request.moved += range.length;
    return true;
  }
  CANELE_COVER(bulk_data_came_early);
  EarlyRanges& early = known != group.ranges.end() ? known->second : group.ranges[word_of(range.transfer_id)];
  request.moved = early.add(request.moved, range.offset, range.offset + range.length);
  if (early.size() > most_gaps) return false;
  if (early.empty()) group.ranges.erase(word_of(range.transfer_id));
  return true;
}

/// Handles that a stream has come further.
static void on_bulk_progress(Context& context, Request& request, Peer& peer) {
  Sink* const sink = request.receive.sink;
  if (sink != nullptr) sink->on_progress(context, request);
  if (request.moved != request.expected) {
    if (is_staged(request)) staged_of(request).arrived(staged_of(request), request.moved);
    return;
  }
  CANELE_COVER(stream_written);
  if (peer.rail_group != nullptr) pacing::transfer_ended(context, peer);
  context.transfers.remove(request.handle);
  if (sink != nullptr) {
    sink->on_done(context, request, peer);
  } else if (request.needs_fin) {
    fin(context, peer, request.transfer_id, CANELE_OK);
  }
  receive_path::complete_receive(context, request, peer, request.expected);
}

void destination_closed(Context& context, Peer& peer, std::size_t index) {
  const OpenDestination destination = peer.rail_group->destinations[index];
  peer.rail_group->destinations.erase(peer.rail_group->destinations.begin() + static_cast<std::ptrdiff_t>(index));
  if (destination.sender_failed && !peer.disconnected())
    return end_failed_transfer(context, peer, destination.transfer_id);
  Request* request = peer.disconnected() ? context.transfers.find(destination.transfer_id) : nullptr;
  if (request != nullptr && request->receive.peer == &peer) {  // its end has waited for this destination only
    context.transfers.remove(destination.transfer_id);
    lost_source(context, *request, peer);
  } else if (destination.asked_again && !peer.disconnected()) {
    on_regrant(context, peer, destination.transfer_id);
  }
}

void lost_source(Context& context, Request& request, const Peer& peer) {
  Sink* const sink = request.receive.sink;
  if (sink != nullptr && sink->outlives(peer)) {
    sink->request_again(context, request);
  } else {
    receive_path::fail_receive(context, request, peer.error);
  }
}

// ---- answers for the floors and files that choose
// ----------------------------------------------------------------------

bool measures_copies(const Context& context, const Peer& peer) {
  return peer.rail->instance->driver->capabilities().rma_min_is_guess && !context.shares_core();
}

bool kernel_copies(const Context& context, const Peer& peer, const Request& request) {
  if (measures_copies(context, peer)) {
    // A long copy by the kernel may be shared by both ends, or made by one of them while the other computes. A stream
    // costs this core a second copy if it sends as much at the same time.
    const bool sends_too = context.sends.used() != 0;
    const bool pays_longer = sends_too || request.data.length > RtrTable::longest_for_one;
    const float ratio = pays_longer && !is_awaited_operand(context, request) ? 2 : 1;
    const bool alone = context.transfers.used() == 0 && context.large.active_copies == 0;
    const bool pays = peer.rail->instance->copy_costs.kernel_pays(request.data.length, ratio, alone);
    return CANELE_BUGGIFY(other_copy) ? !pays : pays;
  }
  const std::size_t from = rma_min_for(context, peer);
  // A limit (`from` above 0) says that two copies are quicker than one by the kernel.
  return request.data.length >= from && (from == 0 || !is_awaited_operand(context, request));
}

/// Returns the length, in bytes, from which on a copy by the kernel is better than a stream.
static std::size_t rma_min_for(const Context& context, const Peer& peer) {
  const drivers::Capabilities& can = peer.rail->instance->driver->capabilities();
  return context.shares_core() ? can.rma_min_shared_core : can.rma_min;
}

bool has_few_pieces(const Request& request, int most) {
  if (request.data.segments == nullptr) return true;
  iovec pieces[most_pieces];
  std::size_t covered = 0;
  data::pieces(request.data, 0, request.data.length, pieces, most, &covered);
  return covered == request.data.length;
}

void register_memory(Peer& peer, Request& request, drivers::MemoryKey& rkey) {
  drivers::Driver& driver = *peer.rail->instance->driver;
  iovec pieces[most_pieces];
  std::size_t covered = 0;
  const int count = data::pieces(request.data, 0, request.data.length, pieces, most_pieces, &covered);
  rkey.size = 0;
  if (driver.register_memory(peer.rank, drivers::RmaOp::get, pieces, count, &rkey) != drivers::Status::ok)
    rkey.size = 0;
}

}  // namespace canele::comm::rendezvous
