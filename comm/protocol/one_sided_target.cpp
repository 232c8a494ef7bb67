// SPDX-License-Identifier: BSD-3-Clause
//
// One-sided operations at the target.
#include "comm/protocol/one_sided_target.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "comm/link/queue.hpp"
#include "comm/protocol/one_sided_execute.hpp"
#include "comm/protocol/one_sided_permission.hpp"
#include "comm/protocol/one_sided_reply.hpp"
#include "comm/protocol/one_sided_transfer.hpp"
#include "comm/state/atomic_word.hpp"
#include "comm/state/delivery.hpp"
#include "comm/state/payload.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::one_sided {
namespace {

using Payload = std::span<const std::byte>;

constexpr int too_many = 1;  ///< the origin has sent more notifications than it may

/// Lists the peer among those to which a total is to be sent.
void totals_are_due(Context& context, Peer& peer) CANELE_UNDER_LOCK;
void totals_are_due(Context& context, Peer& peer) {
  if (!std::exchange(peer.one_sided->totals_due, true)) context.one_sided.totals_due.push_back(&peer);
  context.mark_backlogged(peer);
}

/// A put whose data comes as a message.
struct LargePut {
  wire::Head head;
  std::uint32_t flags;
  wire::Notification notification;
  StridedMemory memory;  ///< without a base if the put is not allowed
};

/// Takes the strides that the flags announce. Returns false if they do not follow, or are no shape of the data.
bool take_strides(std::uint32_t flags, std::uint64_t length, Payload& payload, wire::Strides& strides) {
  return (flags & wire::access_strided) == 0 || (wire::take(payload, strides) && is_shape_of(strides, length));
}

Verdict put_with_fields(Context& context, Peer& peer, const wire::Head& head, std::uint32_t flags,
                        Payload payload) CANELE_UNDER_LOCK;
void executed(Context& context, Peer& peer, std::uint16_t lane, std::uint32_t flags) CANELE_UNDER_LOCK;
void total_is_wanted(Context& context, Peer& peer, std::uint16_t lane) CANELE_UNDER_LOCK;
void reject(Context& context, Peer& peer, std::uint16_t lane, int error) CANELE_UNDER_LOCK;
int notify(Context& context, Peer& peer, const wire::Notification& fields) CANELE_UNDER_LOCK;
void note_taken(Context& context, Peer& peer) CANELE_UNDER_LOCK;
Verdict receive_put(Context& context, Peer& peer, const LargePut& put, Region* region, int error) CANELE_UNDER_LOCK;
Verdict send_got(Context& context, Peer& peer, const wire::Head& head, const StridedMemory& memory,
                 Region& region) CANELE_UNDER_LOCK;
void acknowledge(Context& context, Peer& peer) CANELE_UNDER_LOCK;

}  // namespace

Verdict on_attach(Context& context, Peer& peer, const wire::Head& head, Payload payload) {
  std::uint64_t nonce = 0;
  PeerAccess& access = access_of(peer);
  if (!wire::take(payload, nonce) || head.seq == 0 || head.seq > most_attached)
    return Verdict::violation("it names a memory region by an index that is not valid");
  if (access.attached.size() <= head.seq) access.attached.resize(head.seq + std::size_t{1});
  Region* const region = context.one_sided.regions.find(Handle{head.tag});
  const bool known = region != nullptr && region->nonce == nonce;
  if (const Verdict ended = drop_permission(context, peer, head.seq); !ended.is_ok()) return ended;
  access.attached[head.seq] = {known ? region->handle : Handle::none};
  ++access.attaches_seen;
  if (known) permit(context, peer, *region, head.seq);
  return Verdict::ok();
}

Verdict on_detach(Context& context, Peer& peer, const wire::Head& head) {
  PeerAccess& access = access_of(peer);
  if (head.seq == 0 || head.seq >= access.attached.size())
    return Verdict::violation("it forgets a memory region that it has not named");
  if (const Verdict ended = drop_permission(context, peer, head.seq); !ended.is_ok()) return ended;
  access.attached[head.seq] = {};
  return Verdict::ok();
}

Verdict on_put(Context& context, Peer& peer, const wire::Head& head, Payload payload) {
  std::uint32_t flags = 0;
  if (!wire::take(payload, flags)) return Verdict::violation("a put is too short");
  if ((flags & ~wire::access_wants_ack) != 0) return put_with_fields(context, peer, head, flags, payload);
  PeerAccess& access = access_of(peer);
  if (!may_come(access, head.session)) return too_early();
  Region* region = nullptr;
  if (const int error = find_region(context, access, head, payload.size(), CANELE_ACCESS_WRITE, &region);
      error != CANELE_OK) [[unlikely]]
    return conclude(context, peer, head, flags, error);
  data::copy(region->base + head.tag, payload.data(), payload.size());
  executed(context, peer, head.session, flags);
  return Verdict::ok();
}

namespace {

/// Executes a put with a notification or strides, or whose data comes as a message.
[[gnu::noinline]] Verdict put_with_fields(Context& context, Peer& peer, const wire::Head& head, std::uint32_t flags,
                                          Payload payload) {
  wire::Notification fields{};
  if ((flags & wire::access_notifies) != 0 && !wire::take(payload, fields))
    return Verdict::violation("a put is too short");
  const bool by_message = (flags & wire::access_by_message) != 0;
  StridedMemory memory;
  if (by_message && !wire::take(payload, memory.length)) return Verdict::violation("a put is too short");
  if (!by_message) memory.length = payload.size() - ((flags & wire::access_strided) != 0 ? sizeof(wire::Strides) : 0);
  if (!take_strides(flags, memory.length, payload, memory.strides))
    return Verdict::violation("a put has no valid strides");
  PeerAccess& access = access_of(peer);
  if (!may_come(access, head.session)) return too_early();
  Region* region = nullptr;
  int error =
      find_region(context, access, head, extent_of(memory.strides, memory.length), CANELE_ACCESS_WRITE, &region);
  if (error == CANELE_OK) memory.base = region->base + head.tag;
  if (by_message)
    return receive_put(context, peer, {head, flags, fields, memory}, error == CANELE_OK ? region : nullptr, error);
  if (error == CANELE_OK) memory.write(payload.data());
  if (error == CANELE_OK && (flags & wire::access_notifies) != 0) error = notify(context, peer, fields);
  return conclude(context, peer, head, flags, error);
}

}  // namespace

Verdict on_get(Context& context, Peer& peer, const wire::Head& head, Payload payload) {
  std::uint32_t flags = 0;
  wire::GetRange range{};
  if (!wire::take(payload, flags) || !wire::take(payload, range)) return Verdict::violation("a get is too short");
  StridedMemory memory;
  memory.length = range.length;
  if (!take_strides(flags, memory.length, payload, memory.strides))
    return Verdict::violation("a get has no valid strides");
  PeerAccess& access = access_of(peer);
  if (!may_come(access, head.session)) return too_early();
  if (has_most_replies(context, peer)) return Verdict::violation("it makes more gets than may be under way");
  Region* region = nullptr;
  const std::uint64_t extent = extent_of(memory.strides, memory.length);
  const int error = find_region(context, access, head, extent, CANELE_ACCESS_READ, &region);
  if (error != CANELE_OK) return conclude(context, peer, head, flags, error);
  memory.base = region->base + head.tag;
  const Verdict answered = (flags & wire::access_by_message) != 0
                               ? send_got(context, peer, head, memory, *region)
                               : reply_from(context, peer, {head.session, range.get}, *region, memory);
  return answered.is_ok() ? conclude(context, peer, head, flags, CANELE_OK) : answered;
}

namespace {

/// Sends the answer to a large get as a message.
Verdict send_got(Context& context, Peer& peer, const wire::Head& head, const StridedMemory& memory, Region& region) {
  Transfer* const transfer = new (std::nothrow) Transfer;
  if (transfer == nullptr) return Verdict::retry();
  CANELE_COVER(one_sided_large_get_served);
  transfer->region = &region;
  transfer->memory = memory;
  ++region.uses;
  ++peer.one_sided->serving;
  send(context, *transfer, {peer.rank, head.session, lane_of(*peer.one_sided, head.session).executed + 1, true},
       data_of(transfer->memory), 0);
  return Verdict::ok();
}

/// Receives the data of a large put as a message. Without a region, the data is dropped.
Verdict receive_put(Context& context, Peer& peer, const LargePut& put, Region* region, int error) {
  Transfer* const transfer = new (std::nothrow) Transfer;
  if (transfer == nullptr) return Verdict::retry();
  transfer->region = region;
  transfer->error = error;
  transfer->head = put.head;
  transfer->flags = put.flags;
  transfer->notification = put.notification;
  transfer->memory = put.memory;
  if (region != nullptr) ++region->uses;
  TargetLane& lane = lane_of(*peer.one_sided, put.head.session);
  lane.in_large_put = true;
  receive(context, *transfer, {peer.rank, put.head.session, lane.executed + 1, false},
          region != nullptr ? data_of(transfer->memory) : canele_data_contiguous(nullptr, 0));
  return Verdict::ok();
}

/// The message with the data of a put has ended.
void conclude_put(Context& context, Peer& peer, const Transfer& transfer) CANELE_UNDER_LOCK;
void conclude_put(Context& context, Peer& peer, const Transfer& transfer) {
  const Request& message = transfer.message;
  lane_of(*peer.one_sided, transfer.head.session).in_large_put = false;
  int error = transfer.error;
  if (error == CANELE_OK && (message.status_error != CANELE_OK || message.status_length != message.data.length)) {
    return context.fail_peer(peer, CANELE_EPROTOCOL, true, "the data of its put has another length than it said");
  }
  CANELE_COVER(one_sided_large_put_received);
  if (error == CANELE_OK && (transfer.flags & wire::access_notifies) != 0)
    error = notify(context, peer, transfer.notification);
  const Verdict verdict = conclude(context, peer, transfer.head, transfer.flags, error);
  if (!verdict.is_ok()) context.fail_peer(peer, CANELE_EPROTOCOL, true, verdict.text());
}

}  // namespace

void on_served(Context& context, Transfer& transfer) {
  const bool get = transfer.message.kind == Request::Kind::send;
  Peer& peer = context.peer(transfer.message.rank);
  if (transfer.region != nullptr) --transfer.region->uses;
  if (get) --peer.one_sided->serving;
  if (!get && !peer.disconnected()) conclude_put(context, peer, transfer);
  context.one_sided.transfers.end(transfer);
}

Verdict on_atomic(Context& context, Peer& peer, const wire::Head& head, Payload payload) {
  std::uint32_t flags = 0;
  wire::AtomicWord fields{};
  if (!wire::take(payload, flags) || !wire::take(payload, fields))
    return Verdict::violation("an atomic operation is too short");
  if (!may_come(access_of(peer), head.session)) return too_early();
  if ((fields.size != 4 && fields.size != 8) || fields.operation > CANELE_ATOMIC_COMPARE_AND_SWAP)
    return Verdict::violation("an atomic operation is of no known kind");
  Region* region = nullptr;
  int error = find_region(context, access_of(peer), head, fields.size, CANELE_ACCESS_ATOMIC, &region);
  std::byte* const at = error == CANELE_OK ? region->base + head.tag : nullptr;
  if (reinterpret_cast<std::uintptr_t>(at) % fields.size != 0) error = CANELE_EACCESS;
  if (error != CANELE_OK) {
    reject(context, peer, head.session, error);
  } else {
    const std::uint64_t value = apply(
        {static_cast<canele_atomic_operation>(fields.operation), fields.size, fields.operand, fields.compare}, at);
    if (fields.result != Handle::none) {
      link::answer(context, peer,
                   {.type = wire::Type::result,
                    .tag = word_of(fields.result),
                    .session = head.session,
                    .payload = link::bytes_of(value)});
    }
  }
  executed(context, peer, head.session, flags);
  return Verdict::ok();
}

Verdict on_notify(Context& context, Peer& peer, const wire::Head& head, Payload payload) {
  std::uint32_t flags = 0;
  wire::Notification fields{};
  if (!wire::take(payload, flags) || !wire::take(payload, fields))
    return Verdict::violation("a notification is too short");
  if (!may_come(access_of(peer), head.session)) return too_early();
  const int error = notify(context, peer, fields);
  return conclude(context, peer, head, flags, error);
}

Verdict on_flush(Context& context, Peer& peer, const wire::Head& head, Payload payload) {
  std::uint32_t flags = 0;
  if (!wire::take(payload, flags)) return Verdict::violation("a flush is too short");
  if (!may_come(access_of(peer), head.session)) return too_early();
  executed(context, peer, head.session, flags);
  return Verdict::ok();
}

Verdict conclude(Context& context, Peer& peer, const wire::Head& head, std::uint32_t flags, int error) {
  if (error == too_many) return Verdict::violation("it sends more notifications than may wait for this program");
  if (error != CANELE_OK) reject(context, peer, head.session, error);
  executed(context, peer, head.session, flags);
  return Verdict::ok();
}

namespace {

/// Counts an operation of the lane as executed. The total is sent at the end of the batch, if it is wanted.
[[gnu::always_inline]] inline void executed(Context& context, Peer& peer, std::uint16_t lane, std::uint32_t flags) {
  ++lane_of(*peer.one_sided, lane).executed;
  context.counters.add(Counter::accesses_executed);
  if ((flags & wire::access_wants_ack) != 0) total_is_wanted(context, peer, lane);
}

[[gnu::noinline]] void total_is_wanted(Context& context, Peer& peer, std::uint16_t lane) {
  PeerAccess& access = *peer.one_sided;
  if (std::find(access.acks_due.begin(), access.acks_due.end(), lane) == access.acks_due.end())
    access.acks_due.push_back(lane);
  totals_are_due(context, peer);
}

/// Tells the origin why the operation that is about to count as executed was not.
void reject(Context& context, Peer& peer, std::uint16_t lane, int error) {
  const std::uint64_t number = lane_of(*peer.one_sided, lane).executed + 1;
  const auto code = static_cast<std::int32_t>(error);
  CANELE_COVER(one_sided_rejected);
  context.counters.add(Counter::accesses_rejected);
  link::send_control(
      context, peer,
      {.type = wire::Type::access_failed, .tag = number, .session = lane, .payload = link::bytes_of(code)});
}

/// Begins to deliver a notification. Returns the error for its origin, or too_many.
int notify(Context& context, Peer& peer, const wire::Notification& fields) {
  State& state = context.one_sided;
  PeerAccess& access = access_of(peer);
  if (access.notified - access.taken >= most_notifications) return too_many;
  ++access.notified;
  const bool open = fields.slot != 0 && fields.slot <= state.slots.size() && state.slots[fields.slot - 1].open;
  if (open && deliver_under_lock(context, state.slots[fields.slot - 1].then)) {
    CANELE_COVER(one_sided_notification_counted);
    context.counters.add(Counter::notifications_received);
    note_taken(context, peer);
    return CANELE_OK;
  }
  Notification* one = open ? state.free_notifications : nullptr;
  if (one != nullptr) {
    state.free_notifications = one->next_free;
  } else if (open) {
    state.all_notifications.push_back(std::make_unique<Notification>());
    one = state.all_notifications.back().get();
  }
  if (one == nullptr) {
    ++access.taken;
    access.taken_due = true;
    totals_are_due(context, peer);
    return CANELE_EREVOKED;
  }
  one->context = &context;
  one->then = state.slots[fields.slot - 1].then;
  one->user = one->then.user;
  one->source = peer.rank;
  one->slot = fields.slot;
  one->immediate = fields.immediate;
  one->offset = fields.offset;
  one->length = fields.length;
  one->CallOp::kind = OpKind::call;
  one->call = [](Context& of, CallOp& op) CANELE_UNDER_LOCK { on_taken(of, static_cast<Notification&>(op)); };
  context.counters.add(Counter::notifications_received);
  deliver_in_order(state.delivery, *one);
  return CANELE_OK;
}

/// The program has a notification. Its origin is told of every few.
void note_taken(Context& context, Peer& peer) {
  PeerAccess& access = *peer.one_sided;
  ++access.taken;
  constexpr std::uint64_t seldom = most_notifications / 4;
  if (access.taken % seldom != 0 || peer.disconnected()) return;
  access.taken_due = true;
  totals_are_due(context, peer);
}

}  // namespace

void on_taken(Context& context, Notification& notification) {
  notification.next_free = context.one_sided.free_notifications;
  context.one_sided.free_notifications = &notification;
  note_taken(context, context.peer(notification.source));
}

void acknowledge_all(Context& context) {
  for (Peer* const peer : context.one_sided.totals_due) {
    peer->one_sided->totals_due = false;
    acknowledge(context, *peer);
  }
  context.one_sided.totals_due.clear();
}

namespace {

void acknowledge(Context& context, Peer& peer) {
  PeerAccess& access = *peer.one_sided;
  for (const std::uint16_t lane : access.acks_due) {
    link::answer(context, peer, {.type = wire::Type::executed, .tag = access.lanes[lane].executed, .session = lane});
  }
  access.acks_due.clear();
  if (!access.taken_due) return;
  access.taken_due = false;
  link::send_control(context, peer, {.type = wire::Type::notified, .tag = access.taken});
}

}  // namespace

}  // namespace canele::comm::one_sided
