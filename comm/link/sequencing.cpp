// SPDX-License-Identifier: BSD-3-Clause
//
// Bundles: groups of rails to one peer.
//
// An eager message is finished when its packet is kept, before any rail has it: the copy is ours.
#include "comm/link/sequencing.hpp"

#include <algorithm>
#include <utility>

#include "comm/link/queue.hpp"
#include "comm/link/transmit.hpp"
#include "ltask/mark.hpp"

namespace canele::comm::bundle {
namespace {

using drivers::Status;
using strategies::Plan;

bool usable(const Rail& rail) { return rail.up && !rail.dead && rail.state == Rail::State::idle && !rail.full; }

/// Makes a kept packet that holds the planned items. The items have left then.
std::shared_ptr<KeptPacket> keep(Context& context, Peer& peer, const Plan& plan) {
  Bundle& bundle = *peer.bundle;
  auto kept = std::make_shared<KeptPacket>();
  kept->number = bundle.next_out++;
  kept->bytes.resize(sizeof(wire::Head) + plan.size);
  const wire::Head head{kept->number, static_cast<std::uint32_t>(bundle.tell()), 0, wire::Type::numbered, 0};
  std::byte* end = wire::put_head(kept->bytes.data(), head, 0);
  for (int i = 0; i < plan.count; ++i) end = context.write_item(peer, *plan.items[i], end, nullptr).end;
  kept->bytes.resize(static_cast<std::size_t>(end - kept->bytes.data()));  // an rts may have turned out shorter
  bundle.sent_bytes += kept->bytes.size();
  bundle.sent.push_back(kept);
  link::count_packet(context, peer, plan);
  for (int i = 0; i < plan.count; ++i) context.item_left(*plan.items[i]);
  return kept;
}

/// Gives a kept packet to a rail. Returns false if the rail is full and has not taken it.
bool put(Context& context, Rail& rail, const std::shared_ptr<KeptPacket>& kept) {
  const iovec piece{kept->bytes.data(), kept->bytes.size()};
  kept->rail = &rail;
  if (rail.slot->memory_only()) {
    rail.full = rail.slot->driver->send_packet(rail.peer->rank, &piece, 1, piece.iov_len,
                                               static_cast<InFlight*>(&rail)) == Status::full;
    return !rail.full;
  }
  rail.packet = link::new_packet(context);
  rail.packet->pieces[rail.packet->piece_count++] = piece;
  rail.packet->size = piece.iov_len;
  rail.kept = kept;
  rail.state = Rail::State::staged;
  rail.slot->push_flush(rail);
  return true;
}

/// Sends a piece of a bulk item on the rail that the item began on. Returns false if that rail cannot take it now.
bool send_bulk(Context& context, Rail& asked, Request& request) {
  if (request.bulk_rail == nullptr || request.bulk_rail->dead) request.bulk_rail = &asked;
  return usable(*request.bulk_rail) && link::send_bulk(context, *request.bulk_rail, request);
}

/// Sends a packet of one chunk, without a number. Returns false if the rail is full and has not taken it.
bool put_alone(Context& context, Rail& rail, wire::Type type, std::uint64_t tag) {
  auto packet = std::make_shared<KeptPacket>();
  packet->bytes.resize(sizeof(wire::Head));
  wire::put_head(packet->bytes.data(), {tag, 0, 0, type, 0}, 0);
  return put(context, rail, packet);
}

/// Sends a packet that only acknowledges. It has no number: with both windows closed, neither side could open the
/// other's.
bool send_ack(Context& context, Rail& rail) {
  CANELE_MARK(acknowledged_without_a_number);
  Bundle& bundle = *rail.peer->bundle;
  if (!put_alone(context, rail, wire::Type::seen, bundle.next_in - 1)) return false;
  bundle.tell();
  return true;
}

/// Sends what may go where no numbered packet can. Returns false if there is nothing, or the rail cannot take it.
bool feed_unnumbered(Context& context, const Peer& peer, Rail& rail) {
  if (peer.bundle->ack_due) return send_ack(context, rail);
  if (!peer.bundle->leaving || !peer.backlog->empty() || rail.said_closing) return false;
  CANELE_MARK(rail_said_closing);
  return rail.said_closing = put_alone(context, rail, wire::Type::closing, 0);
}

/// Gives one packet to one rail. Returns false if there is none for it, or the rail cannot take it.
bool feed(Context& context, Peer& peer, Rail& rail) {
  Bundle& bundle = *peer.bundle;
  if (!bundle.again.empty()) {
    const auto kept = bundle.again.front();
    bundle.again.pop_front();
    CANELE_MARK(packet_sent_again);
    if (put(context, rail, kept)) return true;
    bundle.again.push_front(kept);
    return false;
  }
  const bool shut =
      !bundle.window_open() || (bundle.sent.size() >= 2 * Bundle::told_every && CANELE_BUGGIFY(window_shut));
  if (peer.backlog->empty() || shut) return feed_unnumbered(context, peer, rail);
  const std::size_t most = bundle.max_packet - sizeof(wire::Head);
  Plan plan;
  peer.backlog->plan({most, peer.rail == &rail, &rail.slot->costs}, plan);
  if (plan.count == 0) return feed_unnumbered(context, peer, rail);
  if (plan.items[0]->kind == strategies::Kind::bulk) return send_bulk(context, rail, request_of(*plan.items[0]));
  for (int i = 0; i < plan.count; ++i) plan.items[i]->queued = false;
  peer.queued_bytes -= plan.size;
  const auto kept = keep(context, peer, plan);
  if (!put(context, rail, kept)) bundle.again.push_back(kept);
  return true;
}

/// Acknowledges what has come, if the peer may be waiting for that.
void acknowledge(Context& context, Peer& peer, bool at_once) {
  Bundle& bundle = *peer.bundle;
  const bool soon = bundle.next_in - 1 - bundle.told >= Bundle::told_every ||
                    bundle.untold_bytes >= Bundle::told_every_bytes || CANELE_BUGGIFY(acknowledged_at_once);
  if (!at_once && !soon) return;
  if (bundle.numbers) {
    bundle.ack_due = true;
    context.mark_dirty(peer);
    return;
  }
  link::control(context, peer, wire::Type::seen, bundle.tell(), 0, 0, nullptr, 0);
}

/// Parses the packet whose turn it is. If there is no memory for all of it, its turn remains.
const char* take_next(Context& context, Peer& peer, std::span<const std::byte> bytes) {
  Bundle& bundle = *peer.bundle;
  ++bundle.next_in;
  bundle.untold_bytes += bytes.size();
  if (bytes.empty()) return nullptr;
  const char* const wrong = context.parse_chunks(peer, bytes, &bundle.chunks_done);
  if (wrong == try_later) {
    --bundle.next_in;
    bundle.untold_bytes -= bytes.size();
  }
  return wrong;
}

/// Parses packets that came early and whose turn it is now.
const char* drain_early(Context& context, Peer& peer) {
  Bundle& bundle = *peer.bundle;
  while (!bundle.early.empty() && bundle.early.begin()->first <= bundle.next_in && !peer.gone()) {
    if (bundle.early.begin()->first < bundle.next_in) {  // there was no memory for it, and it has come once more
      CANELE_RARE_MARK(early_packet_came_again);
      bundle.early_bytes -= bundle.early.begin()->second.size();
      bundle.early.erase(bundle.early.begin());
      continue;
    }
    auto first = bundle.early.extract(bundle.early.begin());  // the peer may die of this packet, and drop the others
    const std::vector<std::byte>& bytes = first.mapped();
    if (const char* wrong = take_next(context, peer, bytes); wrong != nullptr) {
      if (wrong == try_later) bundle.early.insert(std::move(first));
      return wrong;
    }
    CANELE_MARK(early_packet_taken);
    bundle.early_bytes -= std::min(bundle.early_bytes, bytes.size());
  }
  return nullptr;
}

void leave_backlog(Peer& peer, Request& request) {
  if (!std::exchange(request.item.queued, false)) return;
  peer.backlog->remove(request.item);
}

/// Starts the bulk bytes of a send again, after their rail has died. The receiver says where to go on.
void restart(Context& context, Peer& peer, Request& request) {
  leave_backlog(peer, request);
  request.bulk_rail = nullptr;
  if (request.confirmed) {
    CANELE_RARE_MARK(restart_not_needed);
    context.sends.remove(request.handle);
    context.finish(request, CANELE_OK);
    return;
  }
  CANELE_MARK(stream_restarted);
  request.moved = request.expected = 0;
  link::control(context, peer, wire::Type::again, request.bulk_key, 0, 0, nullptr, 0);
  request.bulk_key = 0;
}

bool holds(const Rail& rail, const Request& request) {
  return rail.packet != nullptr && rail.packet->bulk && rail.packet->plan.count == 1 &&
         rail.packet->plan.items[0] == &request.item;
}

}  // namespace

void begin(const Context& context, Peer& peer, std::size_t group) {
  if (peer.bundle == nullptr) peer.bundle = std::make_unique<Bundle>();
  peer.bundle->numbers = true;
  for (const auto& slot : context.slots) {
    if (slot->group != group) continue;
    peer.bundle->max_packet = std::min(peer.bundle->max_packet, slot->driver->capabilities().max_packet);
  }
}

void pump(Context& context, Peer& peer) {
  for (const auto& rail : peer.rails) {
    while (usable(*rail) && feed(context, peer, *rail)) {
    }
    if (rail->up && rail->slot->memory_only()) link::doorbell(context, *rail);
  }
}

const char* arrived(Context& context, Peer& peer, const wire::Head& head, std::span<const std::byte> rest) {
  if (peer.bundle == nullptr) peer.bundle = std::make_unique<Bundle>();
  Bundle& bundle = *peer.bundle;
  const std::uint64_t number = head.tag;
  if (number < bundle.next_in) {  // its sender has lost a rail, and the acknowledgement with it
    CANELE_MARK(packet_came_twice);
    // Or the packet was taken, and there was no memory for an early one behind it.
    if (const char* wrong = drain_early(context, peer); wrong != nullptr) return wrong;
    if (!peer.gone()) acknowledge(context, peer, true);
    return nullptr;
  }
  if (number > bundle.next_in) {
    if (number - bundle.next_in > Bundle::most_packets || bundle.early_bytes + rest.size() > 2 * Bundle::most_bytes) {
      return "a packet number is too far ahead";
    }
    CANELE_MARK(packet_came_early);
    if (bundle.early.try_emplace(number, rest.begin(), rest.end()).second) bundle.early_bytes += rest.size();
    return nullptr;
  }
  // The low 32 bits are enough: fewer than 2^31 packets are ever unacknowledged.
  const std::uint64_t acked = bundle.next_out - 1 - bundle.sent.size();
  if (const auto more = static_cast<std::int32_t>(head.seq - static_cast<std::uint32_t>(acked)); more > 0) {
    if (const char* wrong = seen(peer, acked + static_cast<std::uint64_t>(more)); wrong != nullptr) return wrong;
    context.mark_dirty(peer);
  }
  if (const char* wrong = take_next(context, peer, rest); wrong != nullptr) return wrong;
  if (const char* wrong = drain_early(context, peer); wrong != nullptr) return wrong;
  if (!peer.gone()) acknowledge(context, peer, false);
  return nullptr;
}

const char* seen(Peer& peer, std::uint64_t upto) {
  if (peer.bundle == nullptr || upto >= peer.bundle->next_out) return "it acknowledges a packet that was not sent";
  Bundle& bundle = *peer.bundle;
  while (!bundle.sent.empty() && bundle.sent.front()->number <= upto) {
    bundle.sent_bytes -= bundle.sent.front()->bytes.size();
    bundle.sent.pop_front();
  }
  std::erase_if(bundle.again, [&](const auto& kept) { return kept->number <= upto; });
  return nullptr;
}

void leave(Context& context, Peer& peer) {
  if (peer.bundle == nullptr || !peer.bundle->numbers) return;
  peer.bundle->leaving = true;
  context.mark_dirty(peer);
}

bool has_left(const Peer& peer) {
  if (peer.bundle == nullptr || !peer.bundle->leaving) return true;
  return std::all_of(peer.rails.begin(), peer.rails.end(),
                     [](const auto& rail) { return !rail->up || rail->dead || rail->said_closing; });
}

void rail_lost(Context& context, Peer& peer, Rail& rail) {
  Bundle& bundle = *peer.bundle;
  for (const auto& kept : bundle.sent) {
    const bool waits = std::find(bundle.again.begin(), bundle.again.end(), kept) != bundle.again.end();
    if (kept->rail == &rail && !waits) bundle.again.push_back(kept);
  }
  std::sort(bundle.again.begin(), bundle.again.end(),
            [](const auto& a, const auto& b) { return a->number < b->number; });
  context.sends.each([&](Request& request) {
    const bool was_here = request.rank == peer.rank && request.bulk_rail == &rail && request.expected != 0;
    if (was_here && holds(rail, request)) {
      CANELE_MARK(stream_held_by_a_dead_rail);
      leave_backlog(peer, request);  // no other rail may go on with it before this one lets go
    } else if (was_here) {
      restart(context, peer, request);
    }
  });
  if (!rail.in_flush) take_back(context, rail);
  for (std::size_t i = 0; i < bundle.landings.size();) {
    if (bundle.landings[i].slot == rail.slot) {
      CANELE_RARE_MARK(landing_closed_by_a_dead_rail);
      context.landing_closed(peer, i);
    } else {
      ++i;
    }
  }
  context.mark_dirty(peer);
}

void take_back(Context& context, Rail& rail) {
  rail.kept.reset();
  if (rail.packet == nullptr) return;
  // Only now, when no driver reads its memory any more, may a transfer go on elsewhere and end.
  if (rail.packet->bulk && rail.packet->plan.count == 1) {
    restart(context, *rail.peer, request_of(*rail.packet->plan.items[0]));
  }
  rail.packet->plan.count = 0;
  link::free_packet(context, std::move(rail.packet));
  rail.state = Rail::State::idle;
}

}  // namespace canele::comm::bundle
